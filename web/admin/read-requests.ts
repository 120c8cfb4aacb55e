import type { operations } from '../generated/api.d.ts';
import { adminApi, call } from './api.ts';

export type RequestQuery = NonNullable<operations['listAdminRequests']['parameters']['query']>;
type Listed = operations['listAdminRequests']['responses'][200]['content']['application/json'];

/** Reads a page of the requests of all accounts. @throws ApiError */
export async function readRequests(query: RequestQuery, signal: AbortSignal): Promise<Listed> {
  const page = await call(adminApi.GET('/v1/admin/requests', { params: { query }, signal }));
  if (typeof page === 'string') throw new TypeError('the requests came as CSV');
  return page;
}
