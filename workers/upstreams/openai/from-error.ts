import { cleanVendorText, type HttpHeaders, readRetryAfterMs } from '../http-failure.ts';
import { UpstreamError, type UpstreamFailure } from '../upstream.ts';
import { isRecord, readText } from './json-value.ts';

/**
 * Codes that speak of the key or its account whatever status carries them: an empty account answers 429, a spending
 * limit 400, and neither is cured by waiting or by another request.
 */
const KEY_CODES = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'account_deactivated',
  'invalid_api_key',
]);

/** What a stream says after its 200, as the status that the same failure would have had before it. */
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
}

/** The answer to a call that was refused: its status is not 2xx. `body` is the beginning of what came with it. */
export function toUpstreamError(
  answer: { readonly status: number; readonly headers: HttpHeaders; readonly body: Buffer },
  apiKey: string | null,
): UpstreamError {
  const error = readVendorError(parseJson(answer.body));
  const retryAfterMs = readRetryAfterMs(answer.headers, Date.now());
  return buildError(answer.status, error, apiKey, retryAfterMs);
}

/** An error that came as the body of a 200, or as a chunk of a stream: `{"error": …}`. */
export function toErrorWithin(value: unknown, apiKey: string | null): UpstreamError {
  const error = readVendorError(value);
  const numeric = Number(error.code);
  const status =
    Number.isInteger(numeric) && numeric >= 400 && numeric < 600
      ? numeric
      : (STATUS_OF_CODE[error.code ?? ''] ?? STATUS_OF_TYPE[error.type ?? ''] ?? 500);
  return buildError(status, error, apiKey, null);
}

/** The one place where a vendor's status becomes ours. Texts are never read: they change without notice. */
function classify(status: number, error: VendorError): UpstreamFailure {
  if (KEY_CODES.has(error.code ?? '') || KEY_CODES.has(error.type ?? '')) {
    return 'auth';
  }
  switch (status) {
    case 400:
    case 404:
    case 413:
    case 422:
      return 'rejected';
    case 401:
    case 402:
    case 403:
      return 'auth';
    case 429:
      return 'rate_limited';
    case 408:
    case 504:
      return 'timeout';
    default:
      return 'unavailable';
  }
}

function buildError(
  status: number,
  error: VendorError,
  apiKey: string | null,
  retryAfterMs: number | null,
): UpstreamError {
  const failure = classify(status, error);
  const text = cleanVendorText(error.message, apiKey);
  return new UpstreamError(failure, describe(failure, status, error, text, apiKey), { status, retryAfterMs });
}

function describe(
  failure: UpstreamFailure,
  status: number,
  error: VendorError,
  text: string,
  apiKey: string | null,
): string {
  const name = error.code ?? error.type;
  const head = `the upstream answered ${status}${name === null ? '' : ` (${cleanVendorText(name, apiKey).slice(0, 100)})`}`;
  if (failure === 'auth') {
    // Vendors like to repeat the key here, in shapes that no redaction foresees: status and code say enough.
    return head;
  }
  // A caller who sees why the request was refused needs the vendor's words alone.
  return failure === 'rejected' && text !== '' ? text : text === '' ? head : `${head}: ${text}`;
}

/**
 * OpenAI's `{error: {message, type, code}}`, and what compatible servers make of it: `{error: "text"}`, the error at
 * the top (older vLLM), `{detail}` (FastAPI).
 */
function readVendorError(value: unknown): VendorError {
  const body = isRecord(value) ? value : {};
  const error = isRecord(body['error']) ? body['error'] : body;
  const code = error['code'];
  return {
    message:
      readText(error['message']) ??
      readText(body['error']) ??
      readText(body['message']) ??
      readDetail(body['detail']),
    code: typeof code === 'number' ? String(code) : readText(code),
    type: readText(error['type']) ?? readText(body['error_type']),
  };
}

function readDetail(detail: unknown): string {
  if (Array.isArray(detail)) {
    const messages = detail.flatMap((item: unknown) => (isRecord(item) ? (readText(item['msg']) ?? []) : []));
    return messages.join('; ');
  }
  return readText(detail) ?? '';
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    // A proxy's HTML page, or a body longer than we read: nothing in it is meant for a program.
    return null;
  }
}
