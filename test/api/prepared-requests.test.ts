import test from 'ava';
import { toAppError } from '../../shared/contract/errors.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { prepareChat } from '../../shared/preparing/chat/prepare-chat.ts';
import { DocumentReader } from '../../shared/preparing/documents/document-reader.ts';
import { prepareEmbedding } from '../../shared/preparing/embeddings/prepare-embedding.ts';
import { prepareImages } from '../../shared/preparing/images/prepare-images.ts';
import { CountedTexts } from '../../shared/preparing/tokens/counted-texts.ts';
import { validateBody, type ModelOperationId } from '../../shared/preparing/validate-body.ts';
import { presentError } from '../../shared/responses/error-body.ts';
import { createModelCatalog } from '../support/model-catalog.ts';
import { toDataUri } from '../support/make-pdf.ts';
import { useStack } from '../support/stack.ts';

/** A request that is prepared without HTTP has the errors that its caller would get over HTTP. */

const text = `
upstreams:
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:1/v1", apiKeys: [key] }
  keyless: { kind: openai, baseUrl: "http://127.0.0.1:1/v1", apiKeys: [env:NO_SUCH_KEY] }
models:
  - { id: chat, type: chat, context: 500, supported_file_types: [pdf, txt], pricing: { prompt: 1 }, routes: [{ upstream: vendor }] }
  - { id: off, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: keyless }] }
  - { id: vectors, type: embedding, context: 100, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 3 }, routes: [{ upstream: vendor }] }
  - { id: picture, type: image, context: 100, size: [512x512, 1024x1024], pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor }] }
`;

const paths: Readonly<Record<ModelOperationId, string>> = {
  createChatCompletion: '/v1/chat/completions',
  createEmbedding: '/v1/embeddings',
  createImage: '/v1/images/generations',
  editImage: '/v1/images/edits',
};

const say = (content: unknown) => [{ role: 'user', content }];
const withFile = (name: string, type: string, bytes: string) =>
  say([{ type: 'file', file: { filename: name, file_data: toDataUri(Buffer.from(bytes), type) } }]);
const image = 'https://pictures.test/a.png';

const invalid: readonly (readonly [ModelOperationId, object])[] = [
  ['createChatCompletion', []],
  ['createChatCompletion', { model: 'chat' }],
  ['createChatCompletion', { model: 'chat', messages: say('a'), temperature: 'hot', n: 0 }],
  ['createChatCompletion', { model: 'chatt', messages: say('a') }],
  ['createChatCompletion', { model: 'off', messages: say('a') }],
  ['createChatCompletion', { model: 'picture', messages: say('a') }],
  ['createChatCompletion', { model: 'chat', messages: say('half \ud83d') }],
  ['createChatCompletion', { model: 'chat', messages: say('word '.repeat(600)) }],
  ['createChatCompletion', { model: 'chat', messages: say('') }],
  ['createChatCompletion', { model: 'chat', messages: withFile('a.pdf', 'application/pdf', 'no PDF') }],
  ['createChatCompletion', { model: 'chat', messages: withFile('a.txt', 'text/plain', 'word '.repeat(600)) }],
  ['createEmbedding', { model: 'vectors', input: [] }],
  ['createEmbedding', { model: 'vectors', input: ['a', 'word '.repeat(200)] }],
  ['createEmbedding', { model: 'vectors', input: [[1, 2], [-1]] }],
  ['createEmbedding', { model: 'vectors', input: 'a', dimensions: 8 }],
  ['createImage', { model: 'picture', prompt: 'a cat', size: '1x1' }],
  ['createImage', { model: 'picture', prompt: 'word '.repeat(200) }],
  ['createImage', { model: 'picture', prompt: 'a cat', n: 9 }],
  ['editImage', { model: 'picture', prompt: 'a cat', image }],
  ['editImage', { model: 'nothing', prompt: 'a cat', image }],
];

const documents = new DocumentReader(createLogger('test', 'silent'));
test.after.always(() => documents.close());
const deps = {
  catalog: createModelCatalog(text),
  documents,
  reasoning: { load: () => Promise.resolve(new Map<string, unknown>()) },
  countedTexts: new CountedTexts(),
};
const options = { accountId: 'account', signal: new AbortController().signal };

async function prepare(id: ModelOperationId, body: unknown): Promise<object> {
  switch (id) {
    case 'createChatCompletion':
      return await prepareChat(deps, validateBody(id, body), options);
    case 'createEmbedding':
      return await prepareEmbedding(deps, validateBody(id, body), options);
    default:
      return await prepareImages(deps, id, validateBody(id, body), options);
  }
}

test('a request that is prepared without HTTP fails with the status and the body that HTTP has', async (t) => {
  const stack = await useStack(t, { catalog: text, workers: [] });
  const { apiKey } = await stack.createAccount();
  const codes = new Set<string>();
  for (const [id, body] of invalid) {
    const response = await stack.post(paths[id], apiKey, body);
    const error = toAppError(await t.throwsAsync(prepare(id, structuredClone(body))));
    const what = `${id} ${JSON.stringify(body).slice(0, 100)}`;
    t.deepEqual(await response.json(), JSON.parse(JSON.stringify(presentError(error))), what);
    t.is(response.status, error.status, what);
    codes.add(error.code);
  }
  t.deepEqual([...codes].toSorted(), [
    'content_too_long',
    'context_length_exceeded',
    'model_disabled',
    'model_not_found',
    'validation_failed',
  ]);
});
