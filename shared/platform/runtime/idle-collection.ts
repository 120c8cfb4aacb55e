// decision 0024
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface IdleCollectionOptions {
  /** Interval of checks whether the process is idle. */
  readonly checkMs?: number;
  /** The process counts as idle when it uses less CPU time than this share of one core. */
  readonly idleShare?: number;
  /**
   * Minimum heap growth since the last collection that justifies another. The heap must also grow by at least a
   * quarter.
   */
  readonly growthBytes?: number;
  /** A collection that releases at least this much is followed by another. */
  readonly releaseBytes?: number;
  /** Collects all garbage synchronously. */
  readonly collect?: () => void;
}

/** An idle process uses a few hundredths of a core for heartbeats and queries. */
const defaultIdleShare = 0.1;
const defaultCheckMs = 5_000;
const defaultGrowthBytes = 32_000_000;
const defaultReleaseBytes = 8_000_000;

/**
 * Collects garbage from earlier load once the process is idle. V8 itself collects only when the heap reaches its limit,
 * which is several times the live size (see `allowHeapGrowth`). If the load ends before that, the garbage would stay in
 * memory until more load arrives. A collection blocks the process for some tens of milliseconds, so none runs while
 * there is work.
 *
 * One collection frees the objects, but moves only some of those that survive: after load, 57 MB of them can still
 * occupy 126 MB. So as long as a collection has given memory back to the machine, the next check collects again.
 * @returns a function that stops the collections
 */
export function collectWhenIdle({
  checkMs = defaultCheckMs,
  idleShare = defaultIdleShare,
  growthBytes = defaultGrowthBytes,
  releaseBytes = defaultReleaseBytes,
  collect = findCollector(),
}: IdleCollectionOptions = {}): () => void {
  /** Lowest heap size since the last collection. Starts at zero because startup leaves garbage, too. */
  let baseBytes = 0;
  let cpu = process.cpuUsage();
  let sinceMs = performance.now();
  let hasReleased = false;
  const check = (): void => {
    const { user, system } = process.cpuUsage(cpu);
    const isIdle = (user + system) / 1_000 < idleShare * (performance.now() - sinceMs);
    const hasGrown = measureHeapBytes() - baseBytes > Math.max(growthBytes, baseBytes / 4);
    const isDue = isIdle && (hasGrown || hasReleased);
    if (isDue) {
      const occupiedBytes = getHeapStatistics().total_heap_size;
      collect();
      hasReleased = occupiedBytes - getHeapStatistics().total_heap_size >= releaseBytes;
    }
    baseBytes = isDue ? measureHeapBytes() : Math.min(baseBytes, measureHeapBytes());
    cpu = process.cpuUsage();
    sinceMs = performance.now();
  };
  const timer = setInterval(check, checkMs).unref();
  return () => clearInterval(timer);
}

/** Returns the size of the heap in bytes, including garbage and external buffers. */
export function measureHeapBytes(): number {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
}

/** Returns Node's collector. Node exposes it only to contexts created while the flag is set. */
export function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  return () => collect();
}
