import type {
  Dialect,
  Operation,
  ErrorCause,
  ErrorReason,
  SimulatedCall,
  SimulatedError,
  SimulatedResponse,
} from '../dialect.ts';
import { handleChat } from './openai-chat.ts';
import { handleEmbeddings } from './openai-embeddings.ts';
import { handleImages } from './openai-images.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';

/** OpenAI's dialect under `/v1`, following the OpenAI API reference. */
export const openAiDialect: Dialect = {
  prefix: '/',
  requestIdHeader: 'x-request-id',
  sendsRetryAfter: true,

  findOperation(method, path) {
    if (method === 'GET') {
      const [, id] = /^\/v1\/models(?:\/(.+))?$/.exec(path) ?? [null];
      return path.startsWith('/v1/models') ? { name: 'models', model: id ?? '', framing: null } : null;
    }
    const name = method === 'POST' ? POST_PATHS[path] : undefined;
    return name === undefined ? null : { name, model: null, framing: null };
  },

  readKey(headers) {
    const [, key = null] = /^Bearer\s+(\S.*)$/i.exec(String(headers['authorization'] ?? '')) ?? [];
    return key;
  },

  // Servers with this dialect often need no key, and a user's first curl should work without one.
  checkHeaders: () => null,

  respond(call) {
    const error = call.operation.name === 'chat' ? checkOpenAiChat(call) : null;
    return error === null ? serveOpenAiCall(call) : { kind: 'error', error };
  },

  createError: (cause) => ERRORS[cause.reason](cause),

  renderError: ({ message, type, code = null, param = null }) =>
    JSON.stringify({ error: { message, type, param, code } }),
};

/** OpenAI's own rules for a chat: a `reasoner` model rejects `max_tokens` and `temperature`. */
function checkOpenAiChat({ model, body }: SimulatedCall): SimulatedError | null {
  const param = findUnsupported(model, body);
  if (param === null) return null;
  const message = `Unsupported parameter: '${param}' is not supported with this model.`;
  return { status: 400, type: 'invalid_request_error', code: 'unsupported_parameter', message, param };
}

function findUnsupported(model: string, body: JsonRecord): string | null {
  if (!model.includes('reasoner')) return null;
  if (body['max_tokens'] !== undefined) return 'max_tokens';
  return body['temperature'] !== undefined && body['temperature'] !== 1 ? 'temperature' : null;
}

/** Serves a call without the rules that only OpenAI itself has. */
export function serveOpenAiCall(call: SimulatedCall): SimulatedResponse {
  switch (call.operation.name) {
    case 'chat':
      return handleChat(call);
    case 'embeddings':
      return handleEmbeddings(call);
    case 'images':
    case 'image-edits':
      return handleImages(call);
    default:
      return { kind: 'whole', parts: [JSON.stringify(listModels(call.model))] };
  }
}

const TYPE_OF_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'invalid_request_error',
  403: 'invalid_request_error',
  404: 'invalid_request_error',
  429: 'requests',
};

const ERRORS: Readonly<Record<ErrorReason, (cause: ErrorCause) => SimulatedError>> = {
  'unknown-path': ({ message }) => toError(404, null, message),
  'not-json': ({ message }) => toError(400, null, message),
  revoked: ({ key }) => toError(401, 'invalid_api_key', `Incorrect API key provided: ${key}.`),
  exhausted: () => ({
    ...toError(429, 'insufficient_quota', 'You exceeded your current quota.'),
    type: 'insufficient_quota',
  }),
  // OpenAI has no such response. Prepaid vendors with OpenAI's format do.
  exhausted402: () => ({
    ...toError(402, 'invalid_request_error', 'Insufficient Balance'),
    type: 'unknown_error',
  }),
  forbidden: () => toError(403, 'missing_scope', 'You have insufficient permissions for this operation.'),
  crowded: () => toError(429, 'rate_limit_exceeded', 'Too many calls at once.'),
  requested: ({ status, message }) => toError(status, null, message),
};

function toError(status: number, code: string | null, message: string): SimulatedError {
  return { status, type: TYPE_OF_STATUS[status] ?? 'server_error', code, message };
}

const POST_PATHS: Readonly<Record<string, Operation['name']>> = {
  '/v1/chat/completions': 'chat',
  '/v1/embeddings': 'embeddings',
  '/v1/images/generations': 'images',
  '/v1/images/edits': 'image-edits',
};

const MODELS = ['gpt-sim', 'gpt-sim-reasoner', 'text-embedding-sim', 'gpt-image-sim'];

/** Any other model name works, too. Fault words in it are applied. */
function listModels(id: string): object {
  const describe = (model: string): object => ({
    id: model,
    object: 'model',
    created: 0,
    owned_by: 'simulator',
  });
  return id === '' ? { object: 'list', data: MODELS.map(describe) } : describe(decodeURIComponent(id));
}
