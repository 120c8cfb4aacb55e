// decision 0105
import { hasUnsafeMethod } from '../../../shared/contract/operation.ts';
import type { Rejection } from '../../../shared/ledger/rejection-store.ts';
import { findOutcome, type Access } from './access-line.ts';

/**
 * Returns what is logged of a request that was rejected: one of an account that asked for work or a change, and for which no
 * vendor was called. Others have rows in the request log.
 */
export function findRejection(access: Access): Rejection | null {
  const { requestId, accountId, operation, response, facts, replayOf, durationMs } = access;
  const { error, isBroken } = response;
  if (accountId === undefined || error === undefined || operation === undefined) return null;
  if (!hasUnsafeMethod(operation) || findOutcome(response) !== 'rejected') return null;
  const wasCalled = facts !== undefined && facts.attempts > 0;
  if (wasCalled || replayOf !== undefined || isBroken === true) return null;
  return {
    requestId,
    accountId,
    model: access.model ?? '',
    at: new Date(Date.now() - durationMs),
    durationMs: Math.round(durationMs),
    status: error.status,
    code: error.code,
    message: error.publicMessage,
    address: access.address ?? '',
  };
}
