import type { Dialect, Operation, SimulatedAnswer, SimulatedCall, SimulatedError } from './dialect.ts';
import { answerChat } from './openai-chat.ts';
import { answerEmbeddings } from './openai-embeddings.ts';
import { makePng } from './tiny-png.ts';

/** OpenAI's dialect under `/v1`, after the shapes of the OpenAI API reference. */
export const openAiDialect: Dialect = {
  findOperation(method, path) {
    if (method === 'GET') {
      const [, id] = /^\/v1\/models(?:\/(.+))?$/.exec(path) ?? [null];
      return path.startsWith('/v1/models') ? { name: 'models', model: id ?? '' } : null;
    }
    const name = method === 'POST' ? POST_PATHS[path] : undefined;
    return name === undefined ? null : { name, model: null };
  },

  readKey(headers) {
    const [, key = null] = /^Bearer\s+(.+)$/i.exec(String(headers['authorization'] ?? '')) ?? [];
    return key;
  },

  answer(call) {
    switch (call.operation) {
      case 'chat':
        return answerChat(call);
      case 'embeddings':
        return answerEmbeddings(call);
      case 'images':
        return answerImages(call);
      default:
        return { kind: 'whole', parts: [JSON.stringify(listModels(call.model))] };
    }
  },

  renderError: ({ message, type, code, param = null }) =>
    JSON.stringify({ error: { message, type, param, code } }),
};

const POST_PATHS: Readonly<Record<string, Operation['name']>> = {
  '/v1/chat/completions': 'chat',
  '/v1/embeddings': 'embeddings',
  '/v1/images/generations': 'images',
};

const PICTURE_SIDE = 64;

function answerImages({ body, model }: SimulatedCall): SimulatedAnswer {
  const { prompt } = body;
  if (typeof prompt !== 'string' || prompt === '') {
    return refuse("'prompt' must be a text", 'prompt');
  }
  if (/gpt-image-/.test(model) && body['response_format'] !== undefined) {
    return refuse("Unknown parameter: 'response_format'.", 'response_format');
  }
  const asksUrl = !/gpt-image-/.test(model) && body['response_format'] !== 'b64_json';
  const data = Array.from({ length: typeof body['n'] === 'number' ? body['n'] : 1 }, (_, index) => {
    // Each picture of a call has a colour of its own, so that tests can tell their order.
    const png = makePng(PICTURE_SIDE, PICTURE_SIDE, [(index * 60) % 256, 120, 200]);
    return asksUrl
      ? { url: `https://images.example/${index}.png` }
      : { b64_json: png.toString('base64'), revised_prompt: `A picture of: ${prompt}` };
  });
  return { kind: 'whole', parts: [JSON.stringify({ created: Math.floor(Date.now() / 1000), data })] };
}

const MODELS = ['gpt-sim', 'gpt-sim-reasoner', 'text-embedding-sim', 'gpt-image-sim'];

/** Any other model is served as well: its name says what goes wrong. */
function listModels(id: string): object {
  const describe = (model: string): object => ({
    id: model,
    object: 'model',
    created: 0,
    owned_by: 'simulator',
  });
  return id === '' ? { object: 'list', data: MODELS.map(describe) } : describe(decodeURIComponent(id));
}

function refuse(message: string, param: string): SimulatedAnswer {
  const error: SimulatedError = { status: 400, type: 'invalid_request_error', code: null, message, param };
  return { kind: 'error', error };
}
