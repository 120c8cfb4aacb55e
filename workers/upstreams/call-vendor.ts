import type { HttpAnswer, HttpClient } from './http-client.ts';
import { type HttpHeaders, readHeader } from './http-failure.ts';
import type { CallContext, UpstreamError } from './upstream.ts';

const MAX_ERROR_BYTES = 16 * 1024;

export interface VendorCall {
  /** Added to the path of the upstream's address; begins with a slash, and may end with a query. */
  readonly path: string;
  /** What the dialect asks for beside the body's type: the key above all. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body: object;
  /** Whether the answer is to come as it is made, and so should begin before long. */
  readonly isStream: boolean;
}

/** An answer whose status is not 2xx. `body` is the beginning of what came with it. */
export interface Refusal {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: Buffer;
}

/** Sends one request. Resolves with an answer of status 2xx; any other becomes what `toError` makes of it. */
export async function callVendor(
  client: HttpClient,
  call: VendorCall,
  context: CallContext,
  toError: (refusal: Refusal) => UpstreamError,
): Promise<HttpAnswer> {
  const headers = { 'content-type': 'application/json', 'user-agent': 'model-gateway', ...call.headers };
  const body = JSON.stringify(call.body);
  const answer = await client.post({
    path: call.path,
    headers,
    body,
    signal: context.signal,
    isStream: call.isStream,
    onSent: context.onSent,
  });
  if (answer.status >= 200 && answer.status < 300) {
    return answer;
  }
  throw toError({
    status: answer.status,
    headers: answer.headers,
    body: await readErrorBody(answer, context),
  });
}

/** Whether the answer is one JSON value rather than a stream of events. */
export function isJson(answer: HttpAnswer): boolean {
  return (readHeader(answer.headers, 'content-type') ?? '').startsWith('application/json');
}

export async function readText(answer: HttpAnswer, maxBytes: number): Promise<string> {
  const body = await answer.readAll(maxBytes);
  return body.toString('utf8');
}

/** The status decides; a refusal whose body is cut or never comes is a refusal all the same. */
async function readErrorBody(answer: HttpAnswer, context: CallContext): Promise<Buffer> {
  try {
    return await answer.readStart(MAX_ERROR_BYTES);
  } catch (error) {
    context.signal.throwIfAborted();
    context.log.debug({ err: error }, 'the body of a refusal could not be read');
    return Buffer.alloc(0);
  }
}
