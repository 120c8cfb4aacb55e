import { createChatCompletion } from './chat.ts';
import { createEmbedding } from './embeddings.ts';
import { getFile } from './files.ts';
import { createImage, editImage } from './images.ts';
import { answersAsync, cancelJob, getJob, listJobs, streamJobEvents } from './jobs.ts';
import { getModel, getModelsStatus, listModels } from './models.ts';
import { getDescription, getDocs, getHealth, getLogsSummary, listServers } from './system.ts';
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
  createChatCompletion: answersAsync(createChatCompletion, 'chat.completions'),
  createEmbedding: answersAsync(createEmbedding, 'embeddings'),
  createImage: answersAsync(createImage, 'images.generations'),
  editImage: answersAsync(editImage, 'images.edits'),
  getFile,
  listJobs,
  getJob,
  cancelJob,
  streamJobEvents,
  listModels,
  getModel,
  getModelsStatus,
  getProfile,
  redeemCode,
  listRefillLogs,
  getStats,
  listRequestLogs,
  regenerateApiKey,
  getLogsSummary,
  listServers,
  getHealth,
  getDescription,
  getDocs,
} as const;

export type OperationId = keyof typeof operations;
