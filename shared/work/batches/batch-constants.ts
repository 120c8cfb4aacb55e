import { liveness } from '../../platform/redis/liveness.ts';

/** How long an ended batch can be read: as long as its result files at most. */
const batchLifetimeMs = 31 * 24 * 60 * 60_000;

/** How long a record outlives its list entries. */
const recordSlackMs = 600_000;

/** The model in whose turns lines are refused, because that needs none. Catalogs cannot have it. */
export const anyModel = '*';

/** For scripts that include batch-functions.lua. */
export const batchConstants = {
  anyModel,
  batchLifetimeMs,
  recordSlackMs,
  sliceLeaseMs: liveness.job.deadMs,
} as const;

/** Batches of an account, ended ones included, whose records are kept. */
export const maxBatchesPerAccount = 10_000;
