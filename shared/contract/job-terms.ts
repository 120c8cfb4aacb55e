/** Public job statuses. A job has exactly one at a time. */
export const jobStatuses = ['queued', 'active', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof jobStatuses)[number];

/** What a job's webhook may be called for. */
export const jobWebhookEvents = ['started', 'ended'] as const;
export type JobWebhookEvent = (typeof jobWebhookEvents)[number];

/** Operations that create jobs: their paths below `/v1/`, with dots. */
export const jobOperations = [
  'chat.completions',
  'images.generations',
  'images.edits',
  'embeddings',
] as const;
export type JobOperation = (typeof jobOperations)[number];
