import { ApiError } from './api-error.ts';

/**
 * Reads what an operation gives as CSV.
 * @param send sends the request with the session
 * @throws ApiError
 */
export async function readCsv(
  send: (request: Request) => Promise<Response>,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<Response> {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const response = await send(new Request(url, { headers: { accept: 'text/csv' } }));
  if (!response.ok) throw ApiError.ofResponse(response, await response.json().catch(() => null));
  return response;
}
