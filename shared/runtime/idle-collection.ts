import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export interface IdleCollectionOptions {
  /** How often it is looked whether the process is idle. */
  readonly checkMs?: number;
  /** CPU time, in shares of one processor, below which a process counts as idle. */
  readonly idleShare?: number;
  /** How much more than after the last collection the heap must hold to be worth another; but a quarter of it at least. */
  readonly growthBytes?: number;
  /** Collects all garbage, at once. */
  readonly collect?: () => void;
}

/** What is left for an idle process to do, heartbeats and queries, takes a few hundredths. */
const defaultIdleShare = 0.1;
const defaultCheckMs = 5_000;
const defaultGrowthBytes = 32_000_000;

/**
 * Collects the garbage that load has left once the process is idle. V8 itself collects when the heap has grown to its bound,
 * which is several times what lives in it (see `letHeapGrow`): where load ends before that, all is held until more load
 * comes. A collection stops the process for some tens of milliseconds, so there is none while there is work.
 * @returns a function that ends it
 */
export function collectWhenIdle({
  checkMs = defaultCheckMs,
  idleShare = defaultIdleShare,
  growthBytes = defaultGrowthBytes,
  collect = findCollector(),
}: IdleCollectionOptions = {}): () => void {
  /** The least that was held since the last collection; at first nothing, as a start leaves garbage, too. */
  let keptBytes = 0;
  let cpu = process.cpuUsage();
  let atMs = performance.now();
  const check = (): void => {
    const { user, system } = process.cpuUsage(cpu);
    const isIdle = (user + system) / 1_000 < idleShare * (performance.now() - atMs);
    const isDue = isIdle && countHeldBytes() - keptBytes > Math.max(growthBytes, keptBytes / 4);
    if (isDue) collect();
    keptBytes = isDue ? countHeldBytes() : Math.min(keptBytes, countHeldBytes());
    cpu = process.cpuUsage();
    atMs = performance.now();
  };
  const timer = setInterval(check, checkMs).unref();
  return () => clearInterval(timer);
}

/** Bytes that the heap holds, alive or not, with the buffers that hang on it. */
export function countHeldBytes(): number {
  const { used_heap_size, external_memory } = getHeapStatistics();
  return used_heap_size + external_memory;
}

/** Node shows its collector only to contexts that are made while a flag says so. */
export function findCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  return () => collect();
}
