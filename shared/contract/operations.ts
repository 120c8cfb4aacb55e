import { createChatCompletion } from './chat.ts';
import { createEmbedding } from './embeddings.ts';
import { createImage, getFile } from './images.ts';
import { getModel, listModels } from './models.ts';
import { getDescription, getDocs, getHealth } from './system.ts';
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
  getFile,
  listModels,
  getModel,
  getProfile,
  redeemCode,
  listRefillLogs,
  getStats,
  listRequestLogs,
  regenerateApiKey,
  getHealth,
  getDescription,
  getDocs,
} as const;

export type OperationId = keyof typeof operations;
