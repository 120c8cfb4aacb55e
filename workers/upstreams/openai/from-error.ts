import type { ErrorResponse } from '../call-vendor.ts';
import { readRetryAfterMs } from '../http-failure.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { lookUp, readArray, readText } from '../json-value.ts';
import type { UpstreamError, UpstreamFailure } from '../upstream.ts';
import { classifyStatus, createVendorError, parseErrorBody } from '../vendor-error.ts';

/**
 * Codes for problems with the key or its account. They take precedence over the status: an empty account results in
 * 429, a spending limit in 400, and neither goes away by waiting or with another request.
 */
const KEY_CODES = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'account_deactivated',
  'invalid_api_key',
]);

/**
 * LiteLLM's proxy without a database answers a wrong key with a 400 and exactly this message. Other servers may quote the
 * caller's text in their messages.
 */
const KEY_MESSAGE = 'No connected db.';

/**
 * What llama.cpp, Ollama and servers built on them say with a 500 about a request that they cannot serve. Every other
 * call of the request would get the same answer, and other requests are served. docs/vendors.md has the same list.
 */
const rejectionWords = [
  'too large to process',
  'exceeds the available context size',
  'input is not supported',
  'does not support image',
  'does not support audio',
  'data required for image input',
  'unsupported value: nan',
  'parse tool call arguments',
  'json.exception.parse_error',
  'failed to load image',
  'failed to decode image',
  'failed to process image',
  'invalid image',
];

/** OpenRouter answers with a 404 if no vendor of the model takes what is in the request. */
const UNSUPPORTED_REQUEST = 'No endpoints found that support ';

/**
 * Messages that determine the classification, because their status and code are those of a key that is rejected or
 * over its limit. Otherwise, such requests would put the key on cooldown for all accounts. Matched by the start of
 * the message. If a vendor changes it, the limiter still puts the key on cooldown only for the accounts that hit the
 * error.
 * - xAI's 403 for text that it does not accept continues with the operator's team and key IDs, which callers
 *   must not see.
 * - OpenAI's 429 for more tokens than the per-minute limit allows does not go away by waiting.
 */
const REJECTED_CONTENT = 'Content violates usage guidelines';
const TOO_LARGE_REQUEST = 'Request too large for ';

/** Maps error codes within a stream to the status that the same failure would have had before the 200. */
const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  rate_limit_exceeded: 429,
  context_length_exceeded: 400,
  content_policy_violation: 400,
};
const STATUS_OF_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  insufficient_quota: 402,
  rate_limit_error: 429,
};

interface VendorError {
  readonly message: string;
  readonly code: string | null;
  readonly type: string | null;
  /** Whether OpenRouter rejected the content of the request: a 403 that is not a problem with the key. */
  readonly isFlagged: boolean;
}

export function toUpstreamError(response: ErrorResponse, apiKey: string | null): UpstreamError {
  const error = readVendorError(parseErrorBody(response.body));
  const retryAfterMs = readRetryAfterMs(response.headers, Date.now());
  return buildError(response.status, error, apiKey, retryAfterMs);
}

/** Translates an error that is the body of a 200, or a chunk of a stream: `{"error": …}`. */
export function toEmbeddedError(value: unknown, apiKey: string | null): UpstreamError {
  const error = readVendorError(value);
  const numeric = Number(error.code);
  const status =
    Number.isInteger(numeric) && numeric >= 400 && numeric < 600
      ? numeric
      : (lookUp(STATUS_OF_CODE, error.code) ?? lookUp(STATUS_OF_TYPE, error.type) ?? 500);
  return buildError(status, error, apiKey, null);
}

function buildError(
  status: number,
  error: VendorError,
  apiKey: string | null,
  retryAfterMs: number | null,
): UpstreamError {
  const isRejectedContent = error.message.startsWith(REJECTED_CONTENT);
  return createVendorError({
    failure: classify(status, error),
    status,
    name: error.code ?? error.type,
    message: isRejectedContent ? `${REJECTED_CONTENT}.` : error.message,
    apiKey,
    retryAfterMs,
  });
}

function classify(status: number, error: VendorError): UpstreamFailure {
  if (KEY_CODES.has(error.code ?? '') || KEY_CODES.has(error.type ?? '')) return 'auth';
  const byStatus = classifyStatus(status);
  if (error.isFlagged || (byStatus === 'auth' && error.message.startsWith(REJECTED_CONTENT)))
    return 'rejected';
  if (byStatus === 'rejected' && error.message === KEY_MESSAGE) return 'auth';
  if (byStatus === 'unavailable' && isRejection(error.message)) return 'rejected';
  if (byStatus === 'missing' && error.message.startsWith(UNSUPPORTED_REQUEST)) return 'rejected';
  if (byStatus === 'rate_limited' && error.message.startsWith(TOO_LARGE_REQUEST)) return 'too_large';
  return byStatus;
}

function isRejection(message: string): boolean {
  const text = message.toLowerCase();
  return rejectionWords.some((words) => text.includes(words));
}

/**
 * Reads OpenAI's `{error: {message, type, code}}` and the variants of compatible servers: `{error: "text"}`,
 * the error at the top level (older vLLM), `{detail}` (FastAPI), `{message: {detail}}` (Mistral).
 */
function readVendorError(value: unknown): VendorError {
  const body = isRecord(value) ? value : {};
  const error = isRecord(body['error']) ? body['error'] : body;
  const code = error['code'];
  const metadata = isRecord(error['metadata']) ? error['metadata'] : {};
  return {
    message:
      readText(error['message']) ??
      readText(body['error']) ??
      readText(body['message']) ??
      readDetail(isRecord(body['message']) ? body['message']['detail'] : body['detail']),
    code: typeof code === 'number' ? String(code) : readText(code),
    type: readText(error['type']) ?? readText(body['error_type']),
    isFlagged: readText(metadata['flagged_input']) !== null,
  };
}

function readDetail(detail: unknown): string {
  if (Array.isArray(detail)) {
    return detail.flatMap(readProblem).join('; ');
  }
  return readText(detail) ?? '';
}

/** What FastAPI finds wrong with a field: `{loc: ['body', 'user'], msg}`. */
function readProblem(item: unknown): string[] {
  const message = isRecord(item) ? readText(item['msg']) : null;
  if (message === null || !isRecord(item)) return [];
  const path = readArray(item['loc']).filter((part) => part !== 'body');
  return [path.length === 0 ? message : `${path.join('.')}: ${message}`];
}
