import { api, call } from '../../../lib/api.ts';
import { readLogUsage, type Usage } from './usage.ts';

/** A request that was stopped is in the log once its vendor's stream has ended and it was charged. */
const delaysMs = [700, 1_000, 1_500, 2_500, 4_000, 6_000];

/**
 * Looks up what a request that was stopped or broke off has cost.
 * @param account the id of the account that sent it
 * @returns null if the log does not have it, such as when it never reached a model
 */
export async function findUsage(requestId: string, account: number | null): Promise<Usage | null> {
  for (const delayMs of delaysMs) {
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    const row = await readRow(requestId, account);
    if (row !== null) return readLogUsage(row);
  }
  return null;
}

async function readRow(requestId: string, account: number | null) {
  const headers = account === null ? {} : { 'x-api-account': String(account) };
  try {
    const rows = await call(
      api.GET('/v1/users/request_logs', { params: { query: { request_id: requestId } }, headers }),
    );
    return typeof rows === 'string' ? null : (rows.items[0] ?? null);
  } catch {
    // The log is looked at again, or the cost stays unknown.
    return null;
  }
}
