/** What an account may have of durable jobs. */
export interface JobSettings {
  /** Jobs that may wait at once; one more is refused. With 0 the account has no durable jobs. */
  readonly maxQueuedJobs: number;
  /** How many turns it has for each turn of an account of weight 1, where accounts wait for the same. */
  readonly weight: number;
}

/** Of accounts for which nobody set anything else. Accounts of earlier releases have neither field. */
export const defaultJobSettings: JobSettings = { maxQueuedJobs: 10_000, weight: 1 };

export const maxQueuedJobsBound = 1_000_000_000;
export const maxWeight = 100;

/** The settings of an account at rest, in which those that were never set are absent. */
export function readJobSettings(account: {
  readonly maxQueuedJobs?: number | undefined;
  readonly weight?: number | undefined;
}): JobSettings {
  return {
    maxQueuedJobs: account.maxQueuedJobs ?? defaultJobSettings.maxQueuedJobs,
    weight: account.weight ?? defaultJobSettings.weight,
  };
}
