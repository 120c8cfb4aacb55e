import { sendRequest } from './api.ts';
import { ApiError } from './api-error.ts';

/** Lets the browser save something that the page has. */
export function saveBlob(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  // Browsers read it after the click.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * Reads bytes of a file that only the session may read, which a plain link could not.
 * @param range for example `bytes=0-65535`; the whole file without
 * @throws ApiError
 */
export async function readFile(path: string, { range, signal }: ReadOptions = {}): Promise<Response> {
  const headers: HeadersInit = range === undefined ? {} : { range };
  const request = new Request(new URL(path, location.origin), {
    headers,
    ...(signal === undefined ? {} : { signal }),
  });
  const response = await sendRequest(request);
  if (!response.ok) throw ApiError.ofResponse(response, await response.json().catch(() => null));
  return response;
}

interface ReadOptions {
  readonly range?: string;
  readonly signal?: AbortSignal;
}

/** Downloads a file that only the session may read. @throws ApiError */
export async function downloadFile(path: string, name: string): Promise<void> {
  saveBlob(await (await readFile(path)).blob(), name);
}
