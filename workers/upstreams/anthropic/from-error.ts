import type { ErrorResponse } from '../call-vendor.ts';
import { readRetryAfterMs } from '../http-failure.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { lookUp, readText } from '../json-value.ts';
import type { UpstreamError, UpstreamFailure } from '../upstream.ts';
import { classifyStatus, createVendorError, parseErrorBody } from '../vendor-error.ts';

/** What each error type means, and the HTTP status that it has unless the response has already begun. */
const TYPES: Readonly<Record<string, { readonly failure: UpstreamFailure; readonly status: number }>> = {
  invalid_request_error: { failure: 'rejected', status: 400 },
  authentication_error: { failure: 'auth', status: 401 },
  billing_error: { failure: 'auth', status: 402 },
  permission_error: { failure: 'auth', status: 403 },
  not_found_error: { failure: 'missing', status: 404 },
  request_too_large: { failure: 'rejected', status: 413 },
  rate_limit_error: { failure: 'rate_limited', status: 429 },
  api_error: { failure: 'unavailable', status: 500 },
  timeout_error: { failure: 'timeout', status: 504 },
  overloaded_error: { failure: 'unavailable', status: 529 },
};

/**
 * Codes for problems with the key or its account that the type and status do not show. Waiting does not solve any of
 * them.
 */
const KEY_CODES = new Set([
  'organization_on_hold',
  'cmek_key_disabled',
  'claude_code_key_creator_not_member',
  'contract_spend_limit_reached',
  'enforced_spend_limit_reached',
  'linked_organization_billing_unavailable',
  'linked_organization_spend_limit_reached',
]);

/**
 * Prefixes of messages that are errors of the key. An account that is out of credit, or over the limit that its owner
 * set, is reported as 400 `invalid_request_error` without a code, like a mistake in the caller's request. If it were
 * classified as a mistake of the caller, the key would stay in use and fail every request. If the API changes these
 * messages, such errors are treated as rejected requests again, which is wrong but has no other effect.
 */
const EMPTY_ACCOUNT_PREFIXES = [
  'Your credit balance is too low to access the ',
  'You have reached your specified API usage limits.',
];

/** A rate limit that waiting does not lift: the key's plan does not allow prompts of that length. */
const TOO_LARGE_PREFIX = 'Extra usage is required for long context requests';

export function toUpstreamError(
  response: ErrorResponse,
  apiKey: string | null,
  nowMs: number,
): UpstreamError {
  const retryAfterMs = readRetryAfterMs(response.headers, nowMs);
  return buildError(response.status, readError(parseErrorBody(response.body)), apiKey, retryAfterMs);
}

/** Translates an error after a 200, either an event of the stream or the body: `{"type": "error", "error": …}`. */
export function toEmbeddedError(value: JsonRecord, apiKey: string | null): UpstreamError {
  const error = readError(value);
  return buildError(lookUp(TYPES, error.type)?.status ?? 500, error, apiKey, null);
}

export function isErrorBody(value: JsonRecord): boolean {
  return value['type'] === 'error' || isRecord(value['error']);
}

interface VendorError {
  readonly type: string | null;
  readonly code: string | null;
  readonly message: string;
}

function readError(value: unknown): VendorError {
  const body = isRecord(value) ? value : {};
  const error = isRecord(body['error']) ? body['error'] : {};
  const details = isRecord(error['details']) ? error['details'] : {};
  return {
    type: readText(error['type']),
    code: readText(details['error_code']),
    message: readText(error['message']) ?? '',
  };
}

function buildError(
  status: number,
  error: VendorError,
  apiKey: string | null,
  retryAfterMs: number | null,
): UpstreamError {
  const { message } = error;
  const failure = classify(status, error);
  return createVendorError({
    failure,
    status,
    name: isEmptyAccount(error) ? 'out of credit' : (error.code ?? error.type),
    message,
    apiKey,
    retryAfterMs,
  });
}

function isEmptyAccount({ type, message }: VendorError): boolean {
  return (
    type === 'invalid_request_error' && EMPTY_ACCOUNT_PREFIXES.some((prefix) => message.startsWith(prefix))
  );
}

function classify(status: number, error: VendorError): UpstreamFailure {
  const { type, code, message } = error;
  if (KEY_CODES.has(code ?? '')) return 'auth';
  const byStatus = classifyStatus(status);
  if (byStatus === 'rate_limited' && message.startsWith(TOO_LARGE_PREFIX)) return 'too_large';
  // If the status shows that the key is rejected or over its limit, ignore the error type.
  if (byStatus === 'auth' || byStatus === 'rate_limited') return byStatus;
  if (isEmptyAccount(error)) return 'auth';
  return lookUp(TYPES, type)?.failure ?? byStatus;
}
