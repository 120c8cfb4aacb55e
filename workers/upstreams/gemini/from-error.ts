import type { ErrorResponse } from '../call-vendor.ts';
import { readRetryAfterMs } from '../http-failure.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { lookUp, readArray, readText } from '../json-value.ts';
import type { UpstreamError, UpstreamFailure } from '../upstream.ts';
import { classifyStatus, createVendorError, parseErrorBody } from '../vendor-error.ts';

/**
 * Google's error names (google.rpc.Code) with their HTTP statuses. `FAILED_PRECONDITION` is a problem with the key
 * although it is a 400: the country of its account is not supported, or its billing is not set up.
 */
const STATUSES: Readonly<Record<string, { readonly status: number; readonly failure: UpstreamFailure }>> = {
  INVALID_ARGUMENT: { status: 400, failure: 'rejected' },
  OUT_OF_RANGE: { status: 400, failure: 'rejected' },
  FAILED_PRECONDITION: { status: 400, failure: 'auth' },
  UNAUTHENTICATED: { status: 401, failure: 'auth' },
  PERMISSION_DENIED: { status: 403, failure: 'auth' },
  NOT_FOUND: { status: 404, failure: 'missing' },
  RESOURCE_EXHAUSTED: { status: 429, failure: 'rate_limited' },
  CANCELLED: { status: 499, failure: 'unavailable' },
  INTERNAL: { status: 500, failure: 'unavailable' },
  UNKNOWN: { status: 500, failure: 'unavailable' },
  UNAVAILABLE: { status: 503, failure: 'unavailable' },
  DEADLINE_EXCEEDED: { status: 504, failure: 'timeout' },
};

/**
 * Reasons (google.rpc.ErrorInfo) for problems with the key. They take precedence over the status, which is 400 for a
 * wrong key.
 */
const KEY_REASON = /^API_KEY_/;

export function toUpstreamError(response: ErrorResponse, apiKey: string | null): UpstreamError {
  const retryAfterMs = readRetryAfterMs(response.headers, Date.now());
  return buildError(findError(parseErrorBody(response.body)) ?? {}, response.status, apiKey, retryAfterMs);
}

/** Translates an error in a 200 response: as a chunk of a stream, or as bare JSON between its events. */
export function toEmbeddedError(value: unknown, apiKey: string | null): UpstreamError {
  return buildError(findError(value) ?? {}, null, apiKey, null);
}

/** Whether a body or a chunk is an error, `{"error": …}`. In a stream, it may be inside an array. */
export function isErrorBody(value: unknown): boolean {
  return findError(value) !== null;
}

function findError(value: unknown): JsonRecord | null {
  const bodies = Array.isArray(value) ? value : [value];
  for (const body of bodies) {
    if (isRecord(body) && isRecord(body['error'])) {
      return body['error'];
    }
  }
  return null;
}

/**
 * Reads only reasons and times from the details, because their texts may contain the key.
 * @param httpStatus null if the HTTP status of the response does not reflect this error
 */
function buildError(
  error: JsonRecord,
  httpStatus: number | null,
  apiKey: string | null,
  retryAfterMs: number | null,
): UpstreamError {
  const name = readText(error['status']);
  const knownError = lookUp(STATUSES, name);
  const code = error['code'];
  const reported = typeof code === 'number' && code >= 400 && code < 600 ? code : null;
  const status = httpStatus ?? reported ?? knownError?.status ?? 500;
  const details = readArray(error['details']).filter(isRecord);
  const isKeyError = details.some((detail) => KEY_REASON.test(readText(detail['reason']) ?? ''));
  return createVendorError({
    failure: isKeyError ? 'auth' : (knownError?.failure ?? classifyStatus(status)),
    status,
    name,
    message: readText(error['message']) ?? '',
    apiKey,
    retryAfterMs: retryAfterMs ?? readRetryDelayMs(details),
  });
}

/** Reads `RetryInfo.retryDelay`, a duration in JSON format: seconds, possibly with a fraction, followed by `s`. */
function readRetryDelayMs(details: readonly JsonRecord[]): number | null {
  for (const detail of details) {
    const [, seconds] = /^(\d+(?:\.\d+)?)s$/.exec(readText(detail['retryDelay']) ?? '') ?? [];
    if (seconds !== undefined) {
      return Math.ceil(Number(seconds) * 1000);
    }
  }
  return null;
}
