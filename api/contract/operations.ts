import { createChatCompletion } from '../../shared/contract/chat.ts';
import { createEmbedding } from '../../shared/contract/embeddings.ts';
import {
  cancelBatch,
  createBatch,
  getBatch,
  listBatches,
  retryBatch,
  streamBatchEvents,
} from '../../shared/contract/batches.ts';
import {
  createFile,
  deleteFile,
  downloadFile,
  estimateFileCost,
  listFiles,
  retrieveFile,
} from './batch-files.ts';
import { getFile } from './files.ts';
import { adminOperations } from './admin/admin-operations.ts';
import { getDemand } from './demand.ts';
import { getLiveness, getMetrics, getReadiness } from './probes.ts';
import { createImage, editImage } from '../../shared/contract/images.ts';
import {
  withAsyncResponse,
  cancelJob,
  cancelJobByPost,
  deleteJobResponse,
  getJob,
  listJobs,
  streamJobEvents,
  streamJobOutput,
} from '../../shared/contract/jobs.ts';
import { getModel, getModelsHistory, getModelsStatus, listModels } from '../../shared/contract/models.ts';
import {
  getDescription,
  getHealth,
  getLogsSummary,
  getWebConfig,
  listServers,
} from '../../shared/contract/system.ts';
import { getProfile, getStats, listRefillLogs, redeemCode, regenerateApiKey } from './users.ts';
import { listRequestLogs } from './request-logs.ts';
import {
  createFirstApiAccount,
  getApiAccount,
  getStatsOfApiAccount,
  linkApiAccount,
  listApiAccounts,
  listRefillLogsOfApiAccount,
  listRequestLogsOfApiAccount,
  redeemForApiAccount,
  renameApiAccount,
} from './web-accounts.ts';
import {
  regenerateKeyOfApiAccount,
  requestRegenerateCode,
  requestRevealCode,
  requestUnlinkCode,
  revealApiKey,
  unlinkApiAccount,
} from './web-confirmations.ts';
import { getWebUser, requestCode, updateWebUser, verifyCode } from './web-auth.ts';
import { createCaptcha, verifyCaptcha } from './web-captcha.ts';
import {
  listSessions,
  logOut,
  logOutEverywhere,
  logOutOthers,
  refreshSession,
  revokeSession,
} from './web-sessions.ts';

/** Every operation of the API. The server refuses to start if one of them has no handler. */
export const operations = {
  createChatCompletion: withAsyncResponse(createChatCompletion, 'chat.completions'),
  createEmbedding: withAsyncResponse(createEmbedding, 'embeddings'),
  createImage: withAsyncResponse(createImage, 'images.generations'),
  editImage: withAsyncResponse(editImage, 'images.edits'),
  getFile,
  listJobs,
  getJob,
  cancelJob,
  cancelJobByPost,
  deleteJobResponse,
  streamJobEvents,
  streamJobOutput,
  createBatch,
  listBatches,
  getBatch,
  cancelBatch,
  retryBatch,
  streamBatchEvents,
  createFile,
  listFiles,
  retrieveFile,
  downloadFile,
  deleteFile,
  estimateFileCost,
  listModels,
  getModel,
  getModelsStatus,
  getModelsHistory,
  getProfile,
  redeemCode,
  listRefillLogs,
  getStats,
  listRequestLogs,
  regenerateApiKey,
  createCaptcha,
  verifyCaptcha,
  requestCode,
  verifyCode,
  getWebUser,
  updateWebUser,
  refreshSession,
  logOut,
  logOutEverywhere,
  logOutOthers,
  listSessions,
  revokeSession,
  listApiAccounts,
  linkApiAccount,
  createFirstApiAccount,
  getApiAccount,
  renameApiAccount,
  unlinkApiAccount,
  requestUnlinkCode,
  requestRevealCode,
  revealApiKey,
  redeemForApiAccount,
  requestRegenerateCode,
  regenerateKeyOfApiAccount,
  listRequestLogsOfApiAccount,
  listRefillLogsOfApiAccount,
  getStatsOfApiAccount,
  getLogsSummary,
  listServers,
  getWebConfig,
  getHealth,
  getLiveness,
  getReadiness,
  getMetrics,
  getDemand,
  ...adminOperations,
  getDescription,
} as const;

export type OperationId = keyof typeof operations;
