// decision 0024
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { LogFormat, Logger } from './logger.ts';
import { ConfigError } from './config-error.ts';
import { logUncaught } from './log-uncaught.ts';
import { collectWhenIdle } from './idle-collection.ts';

/** A running service. `stop` waits for the work in progress. */
export interface Running {
  stop(): Promise<void>;
  /** Called if the process exits before `stop` finishes. Hands back work that other processes wait for. */
  handBack?(): Promise<void>;
}

/**
 * Lets the heap grow to four times its live size before a full collection. By default V8 allows little more than the
 * live size once a process has been idle for some seconds. When load returned, V8 then ran a full collection ten times
 * a second for as long as the load lasted, which took nearly half of the process's time. Buffers stay bounded: V8
 * counts them separately.
 */
function allowHeapGrowth(): void {
  setFlagsFromString('--heap-growing-percent=300');
}

/** How long a process may take to finish its work in progress before it exits anyway. */
const stopTimeoutMs = 27_000;
/** How long it may then take to hand back unfinished work. */
const handBackTimeoutMs = 1_000;
const repeatedSignalMs = 1_000;

/**
 * Runs a process's main part until SIGTERM or SIGINT, then stops it and exits 0. A configuration error prints one
 * clear message and exits 1. An uncaught error writes one log line and exits 1. A second signal exits immediately.
 * @param logFormat of the line about an uncaught error, because `start` has not read the configuration yet
 */
export async function runProcess(
  role: string,
  start: () => Promise<{ running: Running; log: Logger }>,
  { logFormat = null }: { readonly logFormat?: LogFormat | null } = {},
): Promise<void> {
  logUncaught(role, { fd: 1, format: logFormat });
  allowHeapGrowth();
  collectWhenIdle();
  let stopping = false;
  let stoppingSinceMs = 0;
  let current: { running: Running; log: Logger } | null = null;

  /** Unfinished work runs again elsewhere: a job's lock expires, and an api process dispatches its chats again. */
  const exitUnfinished = async (): Promise<void> => {
    current?.log.warn({ stopTimeoutMs }, 'handing back work that did not finish in time');
    try {
      await Promise.race([current?.running.handBack?.(), delay(handBackTimeoutMs)]);
    } catch (error) {
      current?.log.warn({ err: error }, 'handing back unfinished work failed');
    }
    process.exit(0);
  };

  const exitAfterFailedStop = (error: unknown): void => {
    current?.log.error({ err: error }, 'stopping failed');
    process.exit(1);
  };

  const stop = async (signal: string): Promise<void> => {
    if (stopping) {
      // A single Ctrl-C arrives twice: from the terminal, and again forwarded by npm.
      if (performance.now() - stoppingSinceMs > repeatedSignalMs) process.exit(130);
      return;
    }
    stopping = true;
    stoppingSinceMs = performance.now();
    const timer = setTimeout(() => {
      exitUnfinished().catch(exitAfterFailedStop);
    }, stopTimeoutMs);
    timer.unref();
    current?.log.info({ signal }, 'stopping');
    await current?.running.stop();
    process.exit(0);
  };
  const onSignal = (signal: NodeJS.Signals): void => {
    stop(signal).catch(exitAfterFailedStop);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);

  try {
    current = await start();
  } catch (error) {
    if (error instanceof ConfigError) process.stderr.write(`${error.message}\n`);
    else
      process.stderr.write(
        `Could not start. ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
      );
    process.exit(1);
  }
}
