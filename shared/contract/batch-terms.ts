/** The operations whose requests can be lines of a batch, by their paths, as in a batch's `endpoint`. */
export const batchEndpoints = [
  '/v1/embeddings',
  '/v1/chat/completions',
  '/v1/images/generations',
  '/v1/images/edits',
] as const;
export type BatchEndpoint = (typeof batchEndpoints)[number];

export const isBatchEndpoint = (text: string): text is BatchEndpoint =>
  (batchEndpoints as readonly string[]).includes(text);

/** As in OpenAI's API. `completed`, `failed`, `expired` and `cancelled` are final. */
export const batchStatuses = [
  'validating',
  'failed',
  'in_progress',
  'finalizing',
  'completed',
  'expired',
  'cancelling',
  'cancelled',
] as const;
export type BatchStatus = (typeof batchStatuses)[number];

/** In which a batch must end. */
export const batchWindowMs = 24 * 60 * 60_000;

/** The limits of requests that are sent with a batch instead of a file. */
export const maxInlineRequests = 5_000;
export const inlineRequestsBytes = 32_000_000;

/** How long files are kept by default, and at most, in seconds. */
export const maxFileSeconds = 30 * 24 * 60 * 60;
export const minFileSeconds = 60 * 60;
