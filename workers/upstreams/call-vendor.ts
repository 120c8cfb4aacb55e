import { Readable } from 'node:stream';
import { yieldInTurns } from '../../shared/fairness/work-turns.ts';
import { readJson } from '../../shared/encoding/read-json.ts';
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
  /** Headers that the dialect needs in addition to the content type, above all the key. */
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as JSON unless it is encoded already. */
  readonly body: object;
  /** Whether the response is streamed, and so should begin soon. */
  readonly isStream: boolean;
  /** Whether each part of the response may take as long as a whole one. */
  readonly isSlowStream?: boolean;
}

/** A response whose status is not 2xx. `body` is the beginning of its body. */
export interface Refusal {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: Buffer;
}

/** Sends one request. Resolves with a 2xx response; any other status rejects with what `toError` makes of it. */
export async function callVendor(
  client: HttpClient,
  call: VendorCall,
  context: CallContext,
  toError: (refusal: Refusal) => UpstreamError,
): Promise<HttpResponse> {
  const body =
    call.body instanceof RequestBody ? call.body : await encodeJsonBody(call.body, context.accountId);
  const { contentType, length, pieces } = body;
  const answer = await client.post({
    path: call.path,
    headers: {
      'content-type': contentType,
      'content-length': String(length),
      'user-agent': 'model-gateway',
      ...call.headers,
    },
    // Encrypting a large body at once would block the event loop as well.
    body: pieces.length === 1 ? pieces[0]! : Readable.from(yieldInTurns(pieces, context.accountId)),
    signal: context.signal,
    isStream: call.isStream,
    isSlowStream: call.isSlowStream ?? false,
    onSent: context.onSent,
  });
  if (answer.status >= 200 && answer.status < 300) {
    return answer;
  }
  context.onRefused?.();
  throw toError({
    status: answer.status,
    headers: answer.headers,
    body: await readErrorBody(answer, context),
  });
}

/** Whether the response is one JSON value, as opposed to a stream of events. */
export function isJson(answer: HttpResponse): boolean {
  return (readHeader(answer.headers, 'content-type') ?? '').startsWith('application/json');
}

/** Reads a body that is one JSON object, in turns if it is large. Holds only the parsed value, not the body. */
export async function readRecord(
  answer: HttpResponse,
  maxBytes: number,
  what: string,
  { accountId }: CallContext,
): Promise<JsonRecord> {
  const read = await readJson(readChunks(answer, maxBytes), accountId);
  if (read === null) throw new UpstreamError('unavailable', `the upstream sent ${what} that is not JSON`);
  return toRecord(read.value, what);
}

async function* readChunks(answer: HttpResponse, maxBytes: number): AsyncGenerator<Buffer> {
  let length = 0;
  try {
    for (let chunk = await answer.next(); chunk !== null; chunk = await answer.next()) {
      length += chunk.length;
      if (length > maxBytes) {
        answer.abort();
        throw new UpstreamError('unavailable', `the upstream answered with over ${maxBytes} bytes`);
      }
      yield chunk;
    }
  } finally {
    // The rest of a body that is not JSON is not read.
    answer.release();
  }
}

export async function readText(answer: HttpResponse, maxBytes: number): Promise<string> {
  const body = await answer.readAll(maxBytes);
  return body.toString('utf8');
}

/**
 * Reads the beginning of an error body. If the body is cut off or missing, the status alone describes the
 * rejection.
 */
async function readErrorBody(answer: HttpResponse, context: CallContext): Promise<Buffer> {
  try {
    return await answer.readStart(MAX_ERROR_BYTES);
  } catch (error) {
    context.signal.throwIfAborted();
    context.log.debug({ err: error }, 'the body of a refusal could not be read');
    return Buffer.alloc(0);
  }
}
