/**
 * Loaded into api and worker by the bench, with `--expose-gc`. Replies to each message with what the process holds after
 * a garbage collection.
 */

/** What a process holds. */
export interface Holding {
  /** Used heap, including array buffers outside it. */
  readonly heapBytes: number;
  readonly sockets: number;
  readonly timers: number;
}

function readHolding(): Holding {
  globalThis.gc!();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  const count = (type: string): number => resources.filter((resource) => resource === type).length;
  return { heapBytes: heapUsed + arrayBuffers, sockets: count('TCPSocketWrap'), timers: count('Timeout') };
}

process.on('message', () => process.send!(readHolding()));
// The bench must not keep a process alive that has finished.
process.channel!.unref();
