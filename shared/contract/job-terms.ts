/** Public job statuses. A job has exactly one at a time. */
export const jobStatuses = ['queued', 'active', 'succeeded', 'failed', 'cancelled'] as const;
export type JobStatus = (typeof jobStatuses)[number];

/** Operations that create jobs: their paths below `/v1/`, with dots. */
export const jobOperations = [
  'chat.completions',
  'images.generations',
  'images.edits',
  'embeddings',
] as const;
export type JobOperation = (typeof jobOperations)[number];
