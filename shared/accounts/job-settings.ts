/** An account's limits for durable jobs. */
export interface JobSettings {
  /** Jobs that may wait in the queue at the same time. With 0 the account cannot have durable jobs. */
  readonly maxQueuedJobs: number;
  /** How much capacity the account gets when accounts compete, relative to an account of weight 1. */
  readonly weight: number;
}

/** The defaults of settings that were never set. */
export const defaultJobSettings: JobSettings = { maxQueuedJobs: 10_000, weight: 1 };

export const maxQueuedJobsBound = 1_000_000_000;
export const maxWeight = 100;

/** Fills in the defaults of settings that were never set. */
export function readJobSettings(account: {
  readonly maxQueuedJobs?: number | undefined;
  readonly weight?: number | undefined;
}): JobSettings {
  return {
    maxQueuedJobs: account.maxQueuedJobs ?? defaultJobSettings.maxQueuedJobs,
    weight: account.weight ?? defaultJobSettings.weight,
  };
}
