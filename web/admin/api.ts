import { QueryClient } from '@tanstack/preact-query';
import createClient from 'openapi-fetch';
import type { components, paths } from '../generated/api.d.ts';
import { fetchOrThrow } from '../lib/fetch-or-throw.ts';
import { queryClient } from '../lib/queries.ts';
import { noteEnded, readConsoleSession, reloadSession } from './session.ts';

export { call } from '../lib/api.ts';

/** A schema of the API's description, by its name. */
export type Schema<Name extends keyof components['schemas']> = components['schemas'][Name];

const safeMethods: readonly string[] = ['GET', 'HEAD'];

/** Sends a request with the session of the console, such as for a file. @throws ApiError without a response */
export async function sendAdminRequest(request: Request): Promise<Response> {
  const isSafe = safeMethods.includes(request.method);
  if (!isSafe) addCsrfToken(request);
  const repeated = request.clone();
  const response = await fetchOrThrow(request);
  if (response.status === 401) noteEnded();
  // Another tab has started another session.
  if (isSafe || !(await isCsrfFailure(response)) || !(await reloadSession())) return response;
  addCsrfToken(repeated);
  return await fetchOrThrow(repeated);
}

/** That of a dry run allows nothing else, so that a process which does not know dry runs rejects it. */
function addCsrfToken({ url, headers }: Request): void {
  const token = readConsoleSession().session?.csrf_token ?? '';
  const isDryRun = new URL(url).searchParams.get('dry_run') === 'true';
  headers.set('x-csrf-token', isDryRun ? `${token}.dry-run` : token);
}

async function isCsrfFailure(response: Response): Promise<boolean> {
  if (response.status !== 403) return false;
  const body = (await response
    .clone()
    .json()
    .catch(() => null)) as { error?: { code?: string } } | null;
  return body?.error?.code === 'csrf_failed';
}

/** The admin API, with the session of the console: `await call(adminApi.GET('/v1/admin/queues'))`. */
export const adminApi = createClient<paths>({ baseUrl: location.origin, fetch: sendAdminRequest });

/** What the console has read. */
export const consoleQueries = new QueryClient({ defaultOptions: queryClient.getDefaultOptions() });
