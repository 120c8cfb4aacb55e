/** The endpoints of a batch, as its `endpoint` and the `url` of its lines name them. */
export const batchEndpoints = [
  '/v1/chat/completions',
  '/v1/embeddings',
  '/v1/images/generations',
  '/v1/images/edits',
] as const;
export type BatchEndpoint = (typeof batchEndpoints)[number];

export const isBatchEndpoint = (text: string): text is BatchEndpoint =>
  (batchEndpoints as readonly string[]).includes(text);
