import type { WorkerLoad } from '../../shared/work/queue/worker-registry-store.ts';

/** The load of a worker that takes work and has none. */
export const idleLoad: WorkerLoad = {
  active: 0,
  waitingInputs: 0,
  bulkRuns: 0,
  faults: 0,
  isTaking: true,
  concurrency: 1,
  endedPerMinute: 0,
  version: '0.0.0',
  held: new Map(),
};
