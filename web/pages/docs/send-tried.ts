import type { TriedOperation } from '../../../api/pages/docs-data.ts';
import { sendRequest } from '../../lib/api.ts';

/** What is shown of a response, in UTF-16 code units. */
const maxShownChars = 200_000;

const shownHeaders = [
  'content-type',
  'x-request-id',
  'retry-after',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'location',
  'x-incomplete',
];

export interface ResponseHead {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly milliseconds: number;
}

export interface ResponseEnd {
  readonly milliseconds: number;
  readonly isTruncated: boolean;
}

export interface TriedRequest {
  /** By name. Empty ones are left out. */
  readonly values: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Creates the request, without what the session adds. */
export function createRequest(
  { method, path, parameters }: TriedOperation,
  { values, body }: TriedRequest,
  signal: AbortSignal,
): Request {
  const url = new URL(path, location.origin);
  for (const { name, in: place } of parameters) {
    const value = values[name] ?? '';
    if (place === 'path')
      url.pathname = url.pathname.replace(encodeURI(`{${name}}`), encodeURIComponent(value));
    else if (value !== '') url.searchParams.set(name, value);
  }
  const headers: HeadersInit = body === null ? {} : { 'content-type': 'application/json' };
  return new Request(url, { method, headers, body, signal });
}

/**
 * Sends a request with the session.
 * @param onText called with each piece of the response as it comes, up to 200 000 characters in all
 * @throws ApiError without a response; what the connection throws when it breaks off or is aborted
 */
export async function sendTried(
  request: Request,
  onHead: (head: ResponseHead) => void,
  onText: (text: string) => void,
): Promise<ResponseEnd> {
  const startedAt = performance.now();
  const elapsed = (): number => performance.now() - startedAt;
  const response = await sendRequest(request);
  const headers = shownHeaders.flatMap((name) => {
    const value = response.headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  onHead({ status: response.status, headers, milliseconds: elapsed() });
  const isTruncated = await readText(response, onText);
  return { milliseconds: elapsed(), isTruncated };
}

async function readText(response: Response, onText: (text: string) => void): Promise<boolean> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return false;
  let left = maxShownChars;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    onText(value.slice(0, left));
    left -= value.length;
    if (left < 0) {
      await reader.cancel();
      return true;
    }
  }
}
