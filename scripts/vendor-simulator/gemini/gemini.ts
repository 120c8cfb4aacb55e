import { handleGeminiChat } from './gemini-chat.ts';
import { handleGeminiEmbeddings } from './gemini-embeddings.ts';
import { type GeminiRequestError, STATUS_NAMES } from './gemini-error.ts';
import type { Dialect, Operation, ErrorCause, ErrorReason, SimulatedError } from '../dialect.ts';

const PATH = /^\/v1beta\/models\/([^/:]+):(\w+)$/;

/** Google's Gemini API, following its reference, with the vendor's error messages. */
export const geminiDialect: Dialect = {
  prefix: '/v1beta/',
  requestIdHeader: null,
  sendsRetryAfter: false,

  findOperation(method, path, query) {
    const [, encoded = '', action = ''] = PATH.exec(path) ?? [];
    const model = decodeName(encoded);
    if (method !== 'POST' || model === '') {
      return null;
    }
    const framings: Readonly<Record<string, Operation['framing']>> = {
      generateContent: 'whole',
      batchEmbedContents: 'whole',
      streamGenerateContent: query.get('alt') === 'sse' ? 'events' : 'array',
    };
    const framing = Object.hasOwn(framings, action) ? framings[action] : undefined;
    const name = action === 'batchEmbedContents' ? 'embeddings' : 'chat';
    return framing === undefined ? null : { name, model, framing };
  },

  readKey(headers) {
    const key = headers['x-goog-api-key'];
    return typeof key === 'string' && key !== '' ? key : null;
  },

  checkHeaders(headers) {
    const message =
      "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.";
    return geminiDialect.readKey(headers) === null ? toError(403, message) : null;
  },

  respond(call) {
    const result = call.operation.name === 'chat' ? handleGeminiChat(call) : handleGeminiEmbeddings(call);
    return isRequestError(result)
      ? { kind: 'error', error: toError(400, result.errorMessage, result.details) }
      : result;
  },

  createError: (cause) => ERRORS[cause.reason](cause),

  renderError({ status, message, type, details = [] }, { retryAfterMs, framing }) {
    const all = retryAfterMs === null ? details : [...details, describeRetry(retryAfterMs)];
    const error = { code: status, message, status: type, ...(all.length > 0 ? { details: all } : {}) };
    return `${JSON.stringify(framing === 'array' ? [{ error }] : { error }, null, 2)}\n`;
  },
};

function isRequestError(result: object): result is GeminiRequestError {
  return 'errorMessage' in result;
}

const SERVICE = 'generativelanguage.googleapis.com';

function describeReason(reason: string): object {
  return {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason,
    domain: 'googleapis.com',
    metadata: { service: SERVICE },
  };
}

function describeRetry(retryAfterMs: number): object {
  return { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retryAfterMs / 1000}s` };
}

const QUOTA_MESSAGE =
  'You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.';
const exhaust = (): SimulatedError =>
  toError(429, QUOTA_MESSAGE, [
    {
      '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [{ quotaMetric: `${SERVICE}/generate_content_free_tier_requests`, quotaValue: '0' }],
    },
  ]);

const ERRORS: Readonly<Record<ErrorReason, (cause: ErrorCause) => SimulatedError>> = {
  'unknown-path': ({ message }) => toError(404, message),
  'not-json': ({ message }) => toError(400, `Invalid JSON payload received. ${message}`),
  // The details contain the key itself, which a gateway must not pass on to its callers.
  revoked: ({ key }) =>
    toError(400, 'API key not valid. Please pass a valid API key.', [
      describeReason('API_KEY_INVALID'),
      { '@type': 'type.googleapis.com/google.rpc.DebugInfo', detail: `Invalid API key: ${key}` },
    ]),
  exhausted: exhaust,
  exhausted402: exhaust,
  forbidden: () =>
    toError(403, `Requests to this API ${SERVICE} are blocked.`, [describeReason('API_KEY_SERVICE_BLOCKED')]),
  crowded: () => toError(429, 'Resource has been exhausted (e.g. check quota).'),
  requested: ({ status, message }) => toError(status, message),
};

function toError(status: number, message: string, details: readonly object[] = []): SimulatedError {
  const type = STATUS_NAMES[status] ?? (status < 500 ? 'FAILED_PRECONDITION' : 'INTERNAL');
  return { status, type, message, details };
}

function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    // A name that cannot be decoded does not exist.
    return '';
  }
}
