import { handleAnthropicChat } from './anthropic-chat.ts';
import type { Dialect, ErrorCause, ErrorReason, SimulatedError } from '../dialect.ts';

const MESSAGES_PATH = '/v1/messages';

/** Anthropic's Messages API, following its reference, with the vendor's error messages. */
export const anthropicDialect: Dialect = {
  prefix: MESSAGES_PATH,
  requestIdHeader: 'request-id',
  sendsRetryAfter: true,

  findOperation: (method, path) =>
    method === 'POST' && path === MESSAGES_PATH ? { name: 'chat', model: null, framing: null } : null,

  // The vendor's reference specifies x-api-key, but its client now also sends the key as a bearer token.
  readKey(headers) {
    const [, token = null] = /^Bearer\s+(\S.*)$/i.exec(String(headers['authorization'] ?? '')) ?? [];
    const key = headers['x-api-key'];
    return typeof key === 'string' && key !== '' ? key : token;
  },

  checkHeaders(headers) {
    if (anthropicDialect.readKey(headers) === null) {
      return toError(401, 'x-api-key header is required');
    }
    const version = headers['anthropic-version'];
    if (version === undefined) {
      return toError(400, 'anthropic-version: header is required');
    }
    return /^\d{4}-\d{2}-\d{2}$/.test(String(version))
      ? null
      : toError(400, `anthropic-version: "${String(version)}" is not a valid version`);
  },

  respond(call) {
    const result = handleAnthropicChat(call);
    return typeof result === 'string' ? { kind: 'error', error: toError(400, result) } : result;
  },

  createError: (cause) => ERRORS[cause.reason](cause),

  renderError: ({ type, message }, { requestId }) =>
    JSON.stringify({ type: 'error', error: { type, message }, request_id: requestId }),
};

const TYPE_OF_STATUS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

const NO_CREDIT =
  'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.';

const ERRORS: Readonly<Record<ErrorReason, (cause: ErrorCause) => SimulatedError>> = {
  'unknown-path': () => toError(404, 'Not Found'),
  'not-json': ({ message }) => toError(400, `The request body is not valid JSON: ${message}`),
  revoked: () => toError(401, 'invalid x-api-key'),
  // Only the text distinguishes an exhausted account from a bad request.
  exhausted: () => toError(400, NO_CREDIT),
  exhausted402: () => toError(402, NO_CREDIT),
  forbidden: () => toError(403, 'Your API key does not have permission to use the specified resource.'),
  crowded: () => toError(429, 'Number of concurrent connections has exceeded your rate limit.'),
  requested: ({ status, message }) => toError(status, message),
};

function toError(status: number, message: string): SimulatedError {
  const type = TYPE_OF_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  return { status, type, message };
}
