import { getWebhookSecret, rotateAccountKey, rotateWebhookSecret } from './account-secrets.ts';
import {
  banAccount,
  createAccount,
  creditAccount,
  getAccount,
  listAccounts,
  unbanAccount,
  unlinkAccount,
  updateAccount,
} from './accounts.ts';
import { listAccountAddresses, listAccountRefills } from './account-history.ts';
import { createRefillCodes, listRefillCodes, revokeCodesOfBatch, revokeRefillCode } from './codes.ts';
import { findAnything } from './find.ts';
import {
  createAdminToken,
  endAdminSession,
  getAdminSession,
  getAuditEvent,
  listAdminTokens,
  listAuditEvents,
  revokeAdminToken,
  startAdminSession,
} from './operators.ts';
import { discardDeadEntry, listDeadEntries, verifyAccountLedger } from './ledger.ts';
import { checkAdminUpstreams, getDoctorReport } from './doctor.ts';
import { getOverview } from './overview.ts';
import { getAdminRequest, getSpend, listAdminRequests } from './requests.ts';
import {
  drainUpstream,
  listAdminModels,
  listUpstreams,
  resetUpstream,
  testModel,
  undrainUpstream,
  updateModel,
} from './routes.ts';
import { banUser, getUser, listUsers, revokeUserSessions, unbanUser } from './users.ts';
import { cancelAdminBatch, getAdminBatch, listAdminBatches, retryAdminBatch } from './batches.ts';
import {
  cancelAdminJob,
  drainQueue,
  getAdminJob,
  listAdminJobs,
  listFailedJobsOfQueue,
  listQueues,
  retryQueue,
} from './work.ts';

/** Every operation of the admin API that needs a token. */
export const adminOperations = {
  startAdminSession,
  getAdminSession,
  endAdminSession,
  getOverview,
  getDoctorReport,
  checkAdminUpstreams,
  findAnything,
  createAccount,
  listAccounts,
  getAccount,
  listAccountRefills,
  verifyAccountLedger,
  listAccountAddresses,
  listDeadEntries,
  discardDeadEntry,
  updateAccount,
  creditAccount,
  banAccount,
  unbanAccount,
  rotateAccountKey,
  getWebhookSecret,
  rotateWebhookSecret,
  unlinkAccount,
  createRefillCodes,
  listRefillCodes,
  revokeRefillCode,
  revokeCodesOfBatch,
  listAdminModels,
  updateModel,
  testModel,
  listUpstreams,
  resetUpstream,
  drainUpstream,
  undrainUpstream,
  listQueues,
  drainQueue,
  listFailedJobsOfQueue,
  retryQueue,
  listAdminJobs,
  getAdminJob,
  cancelAdminJob,
  listAdminBatches,
  getAdminBatch,
  cancelAdminBatch,
  retryAdminBatch,
  listAdminRequests,
  getAdminRequest,
  getSpend,
  listUsers,
  getUser,
  banUser,
  unbanUser,
  revokeUserSessions,
  createAdminToken,
  listAdminTokens,
  revokeAdminToken,
  listAuditEvents,
  getAuditEvent,
} as const;
