import type { components, operations } from '../../generated/api.d.ts';
import { api, call } from '../../lib/api.ts';
import type { Selection } from './request-filter.ts';

export type RequestRow = components['schemas']['RequestLog'];
export type RequestPage =
  operations['listRequestLogsOfApiAccount']['responses'][200]['content']['application/json'];

/** Reads a page of an account's log. @throws ApiError */
export async function readLog(
  accountId: number,
  selection: Selection & { readonly page?: number },
  signal: AbortSignal,
): Promise<RequestPage> {
  const log = await call(
    api.GET('/v1/web/api-accounts/{account_id}/request-logs', {
      params: { path: { account_id: accountId }, query: selection },
      signal,
    }),
  );
  if (typeof log === 'string') throw new TypeError('the log came as CSV');
  return log;
}
