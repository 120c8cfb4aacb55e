import { schedule, type TaskOptions } from 'node-cron';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';

export interface ScheduledTask {
  /** As the log names it. */
  readonly name: string;
  /** Of cron, in UTC; with six fields the first is the second. */
  readonly expression: string;
  /** @param signal aborts when the worker stops */
  readonly run: (signal: AbortSignal) => Promise<unknown>;
}

/** Runs a task at set times, never twice at once; a run that is due while another goes on is left out. */
export function runOnSchedule({ name, expression, run }: ScheduledTask, log: Logger): Running {
  const stopping = new AbortController();
  let current: Promise<void> = Promise.resolve();
  const runOnce = async (): Promise<void> => {
    try {
      await run(stopping.signal);
    } catch (error) {
      // A worker that stops ends what it was at.
      if (stopping.signal.aborted) return;
      log.warn({ task: name, err: error }, 'scheduled task failed; it runs again at its next time');
    }
  };
  const options: TaskOptions = {
    name,
    timezone: 'UTC',
    noOverlap: true,
    // What a busy process could not begin in time is done at the next time.
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

/** The library writes to the console unless it is given something else. Of its warnings all are about runs left out. */
function createCronLogger(task: string, log: Logger): NonNullable<TaskOptions['logger']> {
  return {
    info: (message) => log.debug({ task }, message),
    warn: (message) => log.debug({ task }, message),
    debug: (message) => log.debug({ task }, String(message)),
    error: (message, error) => log.error({ task, err: error ?? message }, 'scheduling failed'),
  };
}
