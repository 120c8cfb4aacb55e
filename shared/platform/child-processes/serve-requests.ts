import { on } from 'node:events';
import { setPriority } from 'node:os';
import { Worker } from 'node:worker_threads';
import { exitOnUncaught } from '../runtime/exit-on-uncaught.ts';

/** The last message of a child process: an unhandled error that ends it. */
export interface ChildCrash {
  /** `uncaught exception` or `unhandled rejection`. */
  readonly what: string;
  readonly crash: Error;
}

/** Wraps a reply, so that it cannot be mistaken for a crash. */
export interface ChildReply<Reply> {
  readonly reply: Reply;
}

/** The process has started and begins the work on the request. */
export interface ChildBegin {
  readonly begins: true;
}

export type ChildMessage<Reply> = ChildBegin | ChildReply<Reply> | ChildCrash;

/** Lowers the priority of this process, so that its parent, which serves requests, runs first. */
const niceness = 5;
const watchMs = 1_000;

/**
 * Serves the requests of the parent process, one at a time, until the parent ends this process or itself.
 * @param open loads what the requests need, and returns their handler
 */
export async function serveRequests(open: () => Promise<(request: never) => Promise<object>>): Promise<void> {
  if (process.send === undefined) throw new Error('this program is started by another process');
  const send = process.send.bind(process) as (message: ChildMessage<object>, sent?: () => void) => boolean;
  // Stdio is ignored; the parent logs why this process ends.
  exitOnUncaught((crash, what) => new Promise<void>((resolve) => send({ what, crash }, resolve)));
  setPriority(niceness);
  endWithParent();
  // Ignore signals from the parent's console: the parent decides when this process ends.
  process.on('SIGINT', () => undefined).on('SIGTERM', () => undefined);
  // An ordinary exit would wait for native code that is still running.
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
  const handle = await open();
  for await (const [request] of on(process, 'message') as AsyncIterable<[never]>) {
    send({ begins: true });
    send({ reply: await handle(request) });
  }
}

/** Ends this process once its parent has ended for any reason, even while the main thread is busy. */
function endWithParent(): void {
  const watch = `
    const { workerData } = require('node:worker_threads');
    const end = () => process.ppid === workerData || process.kill(process.pid, 'SIGKILL');
    setInterval(end, ${watchMs});
  `;
  new Worker(watch, { eval: true, workerData: process.ppid, execArgv: [] }).unref();
}
