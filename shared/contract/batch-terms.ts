import { createChatCompletion } from './chat.ts';
import { createEmbedding } from './embeddings.ts';
import { createImage, editImage } from './images.ts';
import type { ModelType } from './models.ts';

/** The operations whose requests can be lines of a batch, by their paths, as in a batch's `endpoint`. */
export const batchOperations = {
  '/v1/embeddings': createEmbedding,
  '/v1/chat/completions': createChatCompletion,
  '/v1/images/generations': createImage,
  '/v1/images/edits': editImage,
} as const;
export type BatchEndpoint = keyof typeof batchOperations;

export const batchEndpoints = Object.keys(batchOperations) as readonly BatchEndpoint[];

export const isBatchEndpoint = (text: string): text is BatchEndpoint => Object.hasOwn(batchOperations, text);

/** Whether lines of this endpoint may name models of this type. */
export const acceptsModelType = (endpoint: BatchEndpoint, type: ModelType): boolean =>
  (batchOperations[endpoint].modelTypes as readonly ModelType[]).includes(type);

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
