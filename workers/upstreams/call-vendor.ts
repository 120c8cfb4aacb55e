import { Readable } from 'node:stream';
import { yieldInTurns } from '../../shared/fairness/work-turns.ts';
import { readJson } from './read-json.ts';
import type { HttpResponse, HttpClient } from './http-client.ts';
import { type HttpHeaders, readHeader } from './http-failure.ts';
import { type JsonRecord } from '../../shared/encoding/json-record.ts';
import { toRecord } from './json-value.ts';
import { encodeJsonBody, RequestBody } from './request-body.ts';
import { type CallContext, UpstreamError } from './upstream.ts';

const MAX_ERROR_BYTES = 16 * 1024;

export interface VendorCall {
  /** Appended to the path of the upstream's address. Starts with a slash, and may end with a query. */
  readonly path: string;
  /** Headers that the dialect needs in addition to the content type, in particular the key. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON unless it is already encoded. */
  readonly body: object;
  /** Whether the response is streamed, so that it should begin soon. */
  readonly isStream: boolean;
  /** Whether each part of the response may take as long as a complete response. */
  readonly isSlowStream?: boolean;
}

/** A response whose status is not 2xx. `body` contains only the beginning of its body. */
export interface ErrorResponse {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: Buffer;
}

/** Sends one request. Resolves with a 2xx response; rejects with the result of `toError` for any other status. */
export async function callVendor(
  client: HttpClient,
  call: VendorCall,
  context: CallContext,
  toError: (response: ErrorResponse) => UpstreamError,
): Promise<HttpResponse> {
  const body =
    call.body instanceof RequestBody ? call.body : await encodeJsonBody(call.body, context.accountId);
  const { contentType, length, pieces } = body;
  const { traceparent = null } = context;
  const response = await client.post({
    path: call.path,
    headers: {
      'content-type': contentType,
      'content-length': String(length),
      'user-agent': 'model-gateway',
      ...(traceparent !== null && { traceparent }),
      ...call.headers,
    },
    // Encrypting a large body in one piece would block the event loop as well.
    body: pieces.length === 1 ? pieces[0]! : Readable.from(yieldInTurns(pieces, context.accountId)),
    signal: context.signal,
    isStream: call.isStream,
    isSlowStream: call.isSlowStream ?? false,
    onSent: context.onSent,
  });
  if (response.status >= 200 && response.status < 300) {
    return response;
  }
  context.onRejected?.();
  throw toError({
    status: response.status,
    headers: response.headers,
    body: await readErrorBody(response, context),
  });
}

/** Whether the response is a single JSON value instead of a stream of events. */
export function isJson(response: HttpResponse): boolean {
  return (readHeader(response.headers, 'content-type') ?? '').startsWith('application/json');
}

/** Reads a body that is one JSON object, yielding to other work if it is large. Only the parsed value is in memory. */
export async function readRecord(
  response: HttpResponse,
  maxBytes: number,
  what: string,
  { accountId }: CallContext,
): Promise<JsonRecord> {
  const parsed = await readJson(readChunks(response, maxBytes), accountId);
  if (parsed === null) throw new UpstreamError('unavailable', `the upstream sent ${what} that is not JSON`);
  return toRecord(parsed.value, what);
}

async function* readChunks(response: HttpResponse, maxBytes: number): AsyncGenerator<Buffer> {
  let length = 0;
  try {
    for (let chunk = await response.next(); chunk !== null; chunk = await response.next()) {
      length += chunk.length;
      if (length > maxBytes) {
        response.abort();
        throw new UpstreamError('unavailable', `the upstream sent more than ${maxBytes} bytes`);
      }
      yield chunk;
    }
  } finally {
    // If the body is not JSON, its remainder is not read.
    response.release();
  }
}

export async function readText(response: HttpResponse, maxBytes: number): Promise<string> {
  const body = await response.readAll(maxBytes);
  return body.toString('utf8');
}

/**
 * Reads the beginning of an error body. Returns an empty buffer if the body cannot be read; the status alone then
 * describes the error.
 */
async function readErrorBody(response: HttpResponse, context: CallContext): Promise<Buffer> {
  try {
    return await response.readStart(MAX_ERROR_BYTES);
  } catch (error) {
    context.signal.throwIfAborted();
    context.log.debug({ err: error }, 'reading the body of an error response failed');
    return Buffer.alloc(0);
  }
}
