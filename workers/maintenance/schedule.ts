import { schedule, type TaskOptions } from 'node-cron';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';

export interface ScheduledTask {
  /** For the log. */
  readonly name: string;
  /** A cron expression, in UTC. With six fields, the first is the second. */
  readonly expression: string;
  /** @param signal aborts when the worker stops */
  readonly run: (signal: AbortSignal) => Promise<unknown>;
}

/** Runs a task at set times, never twice at once. A run that is due while another is in progress is skipped. */
export function runOnSchedule({ name, expression, run }: ScheduledTask, log: Logger): Running {
  const stopping = new AbortController();
  let current: Promise<void> = Promise.resolve();
  const runOnce = async (): Promise<void> => {
    try {
      await run(stopping.signal);
    } catch (error) {
      // Stopping aborts the run in progress.
      if (stopping.signal.aborted) return;
      log.warn({ task: name, err: error }, 'scheduled task failed; it runs again at its next time');
    }
  };
  const options: TaskOptions = {
    name,
    timezone: 'UTC',
    noOverlap: true,
    // A run that a busy process could not start in time is left to the next scheduled time.
    suppressMissedWarning: true,
    logger: createCronLogger(name, log),
  };
  const task = schedule(
    expression,
    () => {
      current = runOnce();
      return current;
    },
    options,
  );
  return {
    async stop() {
      stopping.abort();
      await task.destroy();
      await current;
    },
  };
}

/** The library logs to the console by default. All of its warnings are about skipped runs. */
function createCronLogger(task: string, log: Logger): NonNullable<TaskOptions['logger']> {
  return {
    info: (message) => log.debug({ task }, message),
    warn: (message) => log.debug({ task }, message),
    debug: (message) => log.debug({ task }, String(message)),
    error: (message, error) => log.error({ task, err: error ?? message }, 'scheduling failed'),
  };
}
