import { schedule, type TaskOptions } from 'node-cron';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';

export interface ScheduledTask {
  /** For the log. */
  readonly name: string;
  /** A cron expression, in UTC. If it has six fields, the first is for seconds. */
  readonly expression: string;
  /** @param signal aborted when the worker stops */
  readonly run: (signal: AbortSignal) => Promise<unknown>;
}

/** Runs a task on a schedule. A run that is due while the previous one is still running is skipped. */
export function runOnSchedule({ name, expression, run }: ScheduledTask, log: Logger): Running {
  const stopping = new AbortController();
  let current: Promise<void> = Promise.resolve();
  const runOnce = async (): Promise<void> => {
    try {
      await run(stopping.signal);
    } catch (error) {
      // Stopping aborts the current run.
      if (stopping.signal.aborted) return;
      log.warn({ task: name, err: error }, 'scheduled task failed; it runs again at its next scheduled time');
    }
  };
  const options: TaskOptions = {
    name,
    timezone: 'UTC',
    noOverlap: true,
    // If a busy process could not start a run in time, the next run does its work.
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
