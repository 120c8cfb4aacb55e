import test from 'ava';
import fc from 'fast-check';
import { CountedTexts } from '../../../../shared/preparing/tokens/counted-texts.ts';
import { estimateChat, type ChatContents } from '../../../../shared/preparing/chat/estimate-chat.ts';
import { checkChat } from '../../../../shared/preparing/chat/check-chat.ts';
import { DocumentReader } from '../../../../shared/preparing/documents/document-reader.ts';
import { readFiles } from '../../../../shared/preparing/documents/read-files.ts';
import { countReceived } from '../../../../scripts/vendor-simulator/count-received.ts';
import { makePng } from '../../../../scripts/vendor-simulator/tiny-png.ts';
import { parseCatalog } from '../../../../shared/catalog/parse-catalog.ts';
import { ChatRequest } from '../../../../shared/contract/chat.ts';
import { AppError } from '../../../../shared/contract/errors.ts';
import { compileValidator } from '../../../../shared/contract/validation.ts';
import { CountingTurn } from '../../../../shared/catalog/count-tokens.ts';
import type { LoadedReasoning } from '../../../../shared/work/queue/job-kinds.ts';
import { toChatRequest as toMessagesRequest } from '../../../../workers/upstreams/anthropic/to-request.ts';
import { toSavedSignatures } from '../../../../workers/upstreams/gemini/thought-signatures.ts';
import { toChatRequest as toGenerateRequest } from '../../../../workers/upstreams/gemini/to-request.ts';
import { restoreReasoning } from '../../../../workers/upstreams/openai/save-reasoning.ts';
import { toChatRequest as toCompletionRequest } from '../../../../workers/upstreams/openai/to-request.ts';
import {
  nameCall,
  type ChatBody,
  type LoadedMedia,
  type Recalled,
  UpstreamError,
} from '../../../../workers/upstreams/upstream.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { makePdf, toDataUri } from '../../../support/make-pdf.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const vendorModels = {
  openai: 'deepseek-sim',
  anthropic: 'claude-sonnet-4-5',
  gemini: 'gemini-3-pro',
} as const;
type Dialect = keyof typeof vendorModels;

const catalog = parseCatalog(
  `
upstreams:
  openai: { kind: openai, baseUrl: "http://127.0.0.1:1/v1" }
  anthropic: { kind: anthropic, apiKeys: [k] }
  gemini: { kind: gemini, apiKeys: [k] }
  ollama: { kind: openai, baseUrl: "http://127.0.0.1:1/v1", drops: [n] }
models:
  - { id: single, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: ollama }] }
  - { id: mixed, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: ollama }, { upstream: openai }] }${Object.entries(
    vendorModels,
  )
    .map(
      ([kind, model]) => `
  - id: ${kind}
    type: chat
    context: 1000000
    max_output_tokens: 20000
    supported_file_types: [pdf, txt]
    pricing: { prompt: 1, completion: 1 }
    routes: [{ upstream: ${kind}, model: ${model} }]
  - { id: small-${kind}, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: ${kind}, model: ${model} }] }`,
    )
    .join('')}
  - { id: named, type: chat, context: 1000000, tokenizer: o200k_base, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: openai }] }
`,
  { fileName: 'catalog.yaml', env: {}, today: '2026-01-01' },
);
const documents = new DocumentReader(createLogger('test', 'silent'));
test.after.always(() => documents.close());

/** One rouble per million tokens. */
const nanoPerToken = 1_000;
const validate = compileValidator(ChatRequest, 'body');
const { signal } = new AbortController();
const png = makePng(8, 8, [200, 10, 10]).toString('base64');

interface CountedChat {
  readonly body: ChatRequest;
  readonly tokens: number;
  /** Number of tokens reserved for the prompt. */
  readonly reserved: number;
  readonly requestedUnits: number;
  readonly reasoning: readonly LoadedReasoning[];
}

async function count(
  id: string,
  body: object,
  stored: readonly LoadedReasoning[] = [],
): Promise<CountedChat> {
  const model = catalog.find(id)!;
  const prepared = checkChat(validate(structuredClone({ ...body, model: id })), model);
  const files = await readFiles(documents, 'account', prepared, model, signal);
  const counting = { turn: new CountingTurn(), countedTexts: new CountedTexts() };
  const contents: ChatContents = { files, loadReasoning: () => Promise.resolve(stored) };
  const counted = await estimateChat(prepared, model, contents, counting);
  const { promptTokens: tokens, fixedNano, requestedUnits } = counted.estimate;
  return {
    body: prepared,
    tokens,
    reserved: Number(fixedNano) / nanoPerToken,
    requestedUnits,
    reasoning: counted.reasoning,
  };
}

/** The vendor request that the worker would send. */
function translate(dialect: Dialect, { body, reasoning }: CountedChat): object {
  const target = createTarget(vendorModels[dialect]);
  const sent = { ...body, max_tokens: 8_000 } as unknown as ChatBody;
  const recalled: Recalled = new Map(
    reasoning.map(({ messageIndex, toolCallId, value }) => [nameCall(messageIndex, toolCallId), value]),
  );
  const images: ReadonlyMap<string, LoadedMedia> = new Map([
    [`data:image/png;base64,${png}`, { mediaType: 'image/png', base64: png }],
    ['https://a.test/a.png', { mediaType: 'image/png', base64: png }],
  ]);
  switch (dialect) {
    case 'openai':
      return toCompletionRequest(target, restoreReasoning(sent, target.model, recalled), false, images);
    case 'anthropic':
      return toMessagesRequest(target, sent, false, { media: images, recalled }).body;
    default:
      return toGenerateRequest({ ...target, imageUrls: 'fetch' }, sent, { images, recalled });
  }
}

const words = fc.oneof(
  fc.lorem({ maxCount: 30, mode: 'sentences' }),
  fc.string({ maxLength: 200, unit: 'binary' }),
  fc.stringMatching(/^[а-яё ,.]{0,80}$/),
  fc.json({ maxDepth: 3 }),
  fc.constantFrom('', ' ', '\n\n', '{"n":[1e20,1E+20,2e19]}', 'x'.repeat(5_000), '[1e20,'.repeat(40)),
);
const name = fc.stringMatching(/^[a-z_]{1,40}$/);
const callId = fc.oneof(
  fc.constantFrom('functions.f:0', 'call_1'),
  fc.string({ minLength: 1, maxLength: 60 }),
);
const part = fc.oneof(
  fc.record({ type: fc.constant('text'), text: words }),
  fc.record({ text: words }),
  fc.constantFrom(
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'low' } },
    { type: 'image_url', image_url: { url: 'https://a.test/a.png' } },
    { type: 'file', file: { filename: 'a.pdf', file_data: toDataUri(makePdf(['Some words.', 'More.'])) } },
  ),
  words.map((text) => {
    const bytes = Buffer.from(`A file. ${text}`);
    return { type: 'file', file: { filename: 'a.txt', file_data: toDataUri(bytes, 'text/plain') } };
  }),
);
const content = fc.oneof(words, fc.array(part, { minLength: 1, maxLength: 4 }));
const json = fc.dictionary(name, fc.oneof(fc.string(), fc.double({ noNaN: true }), fc.constant(1e20)), {
  maxKeys: 5,
});
const call = fc.record({
  id: callId,
  type: fc.constant('function'),
  function: fc.record({
    name,
    arguments: fc.oneof(
      json.map((value) => JSON.stringify(value)),
      fc.constantFrom('', '{"n":[1e20,1e20]}'),
    ),
  }),
});

/** An assistant's calls with their tool results, or another message. */
const turn = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .record({ role: fc.constant('user'), content, name }, { requiredKeys: ['role', 'content'] })
      .map((message) => [message]),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ role: fc.constantFrom('system', 'developer'), content: words })
      .map((message) => [message]),
  },
  {
    weight: 1,
    arbitrary: fc
      .record(
        { role: fc.constant('assistant'), content: words, reasoning_content: words, refusal: words },
        { requiredKeys: ['role', 'content'] },
      )
      .map((message) => [message]),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.uniqueArray(call, { minLength: 1, maxLength: 3, selector: ({ id }) => id }), words, words)
      .map(([calls, thought, answer]) => [
        { role: 'assistant', content: null, tool_calls: calls, reasoning_content: thought },
        ...calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: answer })),
      ]),
  },
);
const schema = fc.record({
  type: fc.constant('object'),
  properties: fc.dictionary(name, fc.record({ type: fc.constant('string'), description: words })),
});
const request = fc.record(
  {
    // A chat with no content is rejected.
    messages: fc
      .array(turn, { minLength: 1, maxLength: 8 })
      .map((turns): object[] => [{ role: 'user', content: 'go' }, ...turns.flat()]),
    tools: fc.uniqueArray(
      fc.record({
        type: fc.constant('function'),
        function: fc.record({ name, description: words, parameters: schema }),
      }),
      { maxLength: 4, selector: (tool) => tool.function.name },
    ),
    response_format: schema.map((outputSchema) => ({
      type: 'json_schema',
      json_schema: { name: 'answer', schema: outputSchema },
    })),
    stop: fc.array(fc.lorem({ maxCount: 2 }), { maxLength: 4 }),
    user: words.map((text) => text.slice(0, 100)),
    reasoning_effort: fc.constantFrom('low', 'none'),
  },
  { requiredKeys: ['messages'] },
);

/** The saved reasoning that each vendor requires for the conversation's tool calls. */
function createSavedReasoning(
  dialect: Dialect,
  messages: readonly object[],
  text: string,
): LoadedReasoning[] {
  const { [dialect]: model } = vendorModels;
  const values = {
    openai: { kind: 'openai', model, reasoning: text },
    anthropic: {
      kind: 'anthropic',
      model,
      blocks: [{ type: 'thinking', thinking: text, signature: 'c2ln'.repeat(50) }],
    },
    gemini: toSavedSignatures(model, 'c2ln'.repeat(50)),
  };
  return messages.flatMap((message, messageIndex) => {
    const [first] = (message as { tool_calls?: { id: string }[] }).tool_calls ?? [];
    return first === undefined ? [] : [{ messageIndex, toolCallId: first.id, value: values[dialect] }];
  });
}

for (const dialect of Object.keys(vendorModels) as Dialect[]) {
  test(`at least as many tokens are reserved for a chat as are sent to ${dialect}`, async (t) => {
    let translated = 0;
    await fc.assert(
      fc.asyncProperty(request, fc.lorem({ maxCount: 60 }), async (body, thought) => {
        const counted = await count(dialect, body, createSavedReasoning(dialect, body.messages, thought));
        let sent: object;
        try {
          sent = translate(dialect, counted);
        } catch (error) {
          // A request that cannot be translated is never sent.
          if (error instanceof UpstreamError) return;
          throw error;
        }
        translated += 1;
        const received = countReceived(JSON.parse(JSON.stringify(sent)) as Record<string, unknown>);
        t.true(
          counted.tokens >= received * 0.9,
          `${counted.tokens} of ${received}: ${JSON.stringify(sent).slice(0, 3_000)}`,
        );
      }),
      { numRuns: 150, seed: 20_261_122 },
    );
    t.true(translated > 75, `${translated} of the requests were sent`);
  });
}

const long = 'four words of text '.repeat(4_000);
const question = { role: 'user', content: 'go' };
const toolCall = (more: object, functionFields: object = {}): object => ({
  role: 'assistant',
  content: null,
  tool_calls: [
    { id: 'a', type: 'function', ...more, function: { name: 'f', arguments: '{}', ...functionFields } },
  ],
});
const oversized: Record<string, object> = {
  reasoning_content: { messages: [question, { role: 'assistant', content: 'ok', reasoning_content: long }] },
  'the id of a call': { messages: [question, toolCall({ id: long })] },
  'the name of a call': { messages: [question, toolCall({}, { name: long })] },
  tool_call_id: { messages: [question, { role: 'tool', tool_call_id: long, content: 'ok' }] },
  'the id of an audio message': {
    messages: [question, { role: 'assistant', content: 'ok', audio: { id: long } }],
  },
  'the detail of an image': {
    messages: [
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'https://a.test/a.png', detail: long } }],
      },
    ],
  },
  'the format of an audio input': {
    messages: [
      { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AAAA', format: long } }] },
    ],
  },
  'a name': { messages: [{ ...question, name: long }] },
  'a refusal': { messages: [question, { role: 'assistant', content: '', refusal: long }] },
  tools: {
    messages: [question],
    tools: [{ type: 'function', function: { name: 'f', parameters: { [long]: 1 } } }],
  },
  tool_choice: { messages: [question], tool_choice: { type: 'function', function: { name: long } } },
  response_format: {
    messages: [question],
    response_format: { type: 'json_schema', json_schema: { [long]: {} } },
  },
  stop: { messages: [question], stop: [long] },
  metadata: { messages: [question], metadata: { note: long } },
  prompt_cache_key: { messages: [question], prompt_cache_key: long },
};

for (const [where, body] of Object.entries(oversized)) {
  test(`text longer than the context is rejected in ${where}`, async (t) => {
    const error = await t.throwsAsync(count('small-openai', body), { instanceOf: AppError });
    t.is(error?.code, 'context_length_exceeded');
  });
}

test('numbers that a dialect writes with more digits than the caller are tokenized as sent to the vendor', async (t) => {
  const numbers = `{"n":[${Array.from({ length: 500 }, () => '1e20').join(',')}]}`;
  const pieces = [numbers.slice(0, 1_000), numbers.slice(1_000)].map((text) => ({ type: 'text', text }));
  for (const content of [numbers, pieces]) {
    for (const dialect of ['anthropic', 'gemini'] as const) {
      const messages = [
        question,
        toolCall({}, { arguments: numbers }),
        { role: 'tool', tool_call_id: 'a', content },
      ];
      const counted = await count(dialect, { messages });
      const sent = JSON.stringify(translate(dialect, counted));
      t.true(counted.tokens >= countReceived(JSON.parse(sent) as Record<string, unknown>) * 0.9);
    }
  }
});

test('fields that no dialect of a model forwards are neither tokenized nor sent', async (t) => {
  const body = {
    messages: [question, { role: 'assistant', content: 'ok', reasoning_content: long }, question],
  };
  for (const id of ['small-anthropic', 'small-gemini']) {
    const counted = await count(id, body);
    t.true(counted.tokens < 50);
    t.false('reasoning_content' in counted.body.messages[1]!);
  }
});

test('undocumented fields inside a part, call or audio are dropped', async (t) => {
  const { body } = await count('openai', {
    messages: [
      {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'https://a.test/a.png', note: long } }],
      },
      { ...toolCall({ note: long }, { note: long }), audio: { id: 'x', note: long } },
    ],
  });
  t.false(JSON.stringify(body).includes(long));
});

test('the token count of ordinary messages is exact, with four tokens added per message and three for the reply', async (t) => {
  const { tokens } = await count('openai', {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello there' },
    ],
  });
  t.is(tokens, 3 + 4 + 3 + 4 + 2);
});

test('saved reasoning is added latest first, to at most half of the context left by the prompt, and never causes a rejection', async (t) => {
  const value = (text: string): object => ({ kind: 'openai', model: 'deepseek-sim', reasoning: text });
  const turns = Array.from({ length: 4 }, (_, index) => [
    question,
    toolCall({ id: `call_${index}` }),
    { role: 'tool', tool_call_id: `call_${index}`, content: 'ok' },
  ]).flat();
  const saved = [1, 4, 7, 10].map((messageIndex, index) => ({
    messageIndex,
    toolCallId: `call_${index}`,
    value: value('word '.repeat(1_500)),
  }));
  const withoutReasoning = await count('small-openai', { messages: turns });
  const counted = await count('small-openai', { messages: turns }, saved);
  t.deepEqual(counted.reasoning, saved.slice(2));
  t.true(counted.tokens > withoutReasoning.tokens + 3_000);
  t.true(counted.tokens - withoutReasoning.tokens <= (8_192 - withoutReasoning.tokens) / 2);
});

const user = (content: unknown): object => ({ messages: [{ role: 'user', content }] });

test('if other tokenizers may count more tokens in a text than ours, the larger number is reserved, and ours is billed', async (t) => {
  const spaces = ' '.repeat(20_000);
  const file = { filename: 'a.txt', file_data: toDataUri(Buffer.from(spaces), 'text/plain') };
  for (const content of [spaces, [{ type: 'text', text: spaces }], [{ type: 'file', file }]]) {
    const { tokens, reserved } = await count('openai', user(content));
    t.true(tokens < 300);
    t.true(reserved > 19_000 && reserved <= 20_100);
  }
});

test('if the catalog sets a tokenizer for a model, exactly the number of tokens that it counts is reserved', async (t) => {
  const { tokens, reserved } = await count('named', user(' '.repeat(20_000)));
  t.is(reserved, tokens);
});

test('for prose, at most 1.3 times the counted tokens are reserved', async (t) => {
  const prose = 'The keeper of the lighthouse had lived on the island for thirty years. '.repeat(50);
  const { tokens, reserved } = await count('openai', user(prose));
  t.true(reserved >= tokens && reserved <= 1.3 * tokens);
});

test('a prompt that fits the context by our own token count is not rejected, even if other tokenizers may count more', async (t) => {
  const { tokens, reserved } = await count('small-openai', user(`${' '.repeat(1_000)}a`.repeat(400)));
  t.true(tokens < 8_192);
  t.is(reserved, 8_192);
});

test('the reservation covers as many choices as the routes that serve the request will generate', async (t) => {
  const messages = [{ role: 'user', content: 'hi' }];
  for (const [id, n, choices] of [
    ['single', 8, 1],
    ['mixed', 8, 8],
    ['openai', 8, 8],
    ['single', 1, 1],
  ] as const) {
    const { requestedUnits } = await count(id, { messages, max_tokens: 100, n });
    t.is(requestedUnits, 100 * choices, `${id}, n: ${n}`);
  }
});
