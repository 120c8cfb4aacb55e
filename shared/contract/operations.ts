import { createChatCompletion } from './chat.ts';
import { createEmbedding } from './embeddings.ts';
import { createImage } from './images.ts';
import { getModel, listModels } from './models.ts';
import { getHealth } from './system.ts';
import {
  getProfile,
  getStats,
  listRefillLogs,
  listRequestLogs,
  redeemCode,
  regenerateApiKey,
} from './users.ts';

/** Every operation of the API. The server refuses to start while one of them has no handler. */
export const operations = {
  createChatCompletion,
  createEmbedding,
  createImage,
  listModels,
  getModel,
  getProfile,
  redeemCode,
  listRefillLogs,
  getStats,
  listRequestLogs,
  regenerateApiKey,
  getHealth,
} as const;

export type OperationId = keyof typeof operations;
