import test from 'ava';
import { findRow, readAmountCharged } from '../support/observe.ts';
import { chatWithUsage, startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { readAdmin } from '../support/admin.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/**
 * A vendor that reports impossible usage, or far more than was reserved, does not empty a caller's balance.
 */

/** The usage in the next vendor response. */
let reportedUsage: object = {};
/** The next vendor response, instead of the default of one word. */
let nextResponse: readonly string[] | object | null = null;
let vendor: ScriptedVendor;
let stack: TestStack;

test.before(async () => {
  vendor = await startScriptedVendor((body, path) => {
    if (path.endsWith('/embeddings')) {
      const inputs = [body['input']].flat();
      const embedding = Buffer.from(new Float32Array([1, 2]).buffer).toString('base64');
      return { data: inputs.map((_, index) => ({ index, embedding })), usage: reportedUsage };
    }
    if (path.endsWith('/images/generations')) {
      return { created: 1, data: [{ b64_json: tinyPng }], usage: reportedUsage };
    }
    return nextResponse ?? chatWithUsage(reportedUsage);
  });
  stack = await startStack({
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models:
  - { id: chat, type: chat, context: 128000, tokenizer: o200k_base, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor }] }
  - { id: pictured, type: vision, context: 128000, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor }] }
  - { id: sonar, type: chat, context: 128000, tokenizer: o200k_base, web_search: always, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor }] }
  - { id: searcher, type: chat, context: 128000, tokenizer: o200k_base, web_search: true, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor }] }
  - { id: thinker, type: chat, context: 128000, tokenizer: o200k_base, reasoning: true, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor }] }
  - { id: overrunner, type: chat, context: 128000, tokenizer: o200k_base, max_output_tokens: 20000, reasoning: true, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor, maxTokens: answer }] }
  - { id: unbounded, type: chat, context: 128000, tokenizer: o200k_base, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor, drops: [max_tokens, max_completion_tokens] }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 2 }, pricing: { in_cost_per_million: 10 }, routes: [{ upstream: vendor }] }
  - { id: pictures, type: image, context: 8192, max_output_tokens: 5000, pricing: { prompt: 10, completion: 10 }, routes: [{ upstream: vendor }] }
`,
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const tinyPng =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNwav0CAALIAbzDqqRyAAAAAElFTkSuQmCC';
const messages = [{ role: 'user', content: 'hello there world' }];
/**
 * Our own token count: three words, four tokens for the message, three to start the reply; and one word of reply.
 */
const [promptTokens, replyTokens] = [10, 1];
const chatPath = '/v1/chat/completions';

async function send(path: string, body: object, usage: object, balance = '1000') {
  reportedUsage = usage;
  const account = await stack.createAccount({ balance });
  const response = await stack.post(path, account.apiKey, body);
  const row = await findRow(stack, response.headers.get('x-request-id')!);
  const charged = await readAmountCharged(stack, account.id, balance);
  return { status: response.status, row, charged };
}

const usageOf = (prompt: number, completion: number): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  prompt_tokens_details: { cached_tokens: prompt },
});

for (const { title, usage, expected } of [
  {
    title: 'a completion of 100 million tokens',
    usage: usageOf(promptTokens, 100_000_000),
    expected: { promptTokens, completionTokens: replyTokens, cacheReadTokens: promptTokens },
  },
  {
    title: 'a prompt of 100 million tokens',
    usage: usageOf(100_000_000, 1),
    expected: { promptTokens, completionTokens: 1, cacheReadTokens: 0 },
  },
  {
    title: 'a prompt count that fits the context, but is too high for the text in any vocabulary',
    usage: usageOf(50_000, 1),
    expected: { promptTokens, completionTokens: 1, cacheReadTokens: 0 },
  },
  {
    title: 'a completion of no tokens although a word was generated',
    usage: usageOf(promptTokens, 0),
    expected: { promptTokens, completionTokens: replyTokens },
  },
  {
    title: 'a prompt of no tokens',
    usage: usageOf(0, 1),
    expected: { promptTokens, completionTokens: 1 },
  },
  {
    title: 'a completion beyond the limit sent to the vendor',
    usage: usageOf(promptTokens, 300),
    expected: { promptTokens, completionTokens: replyTokens },
  },
]) {
  test.serial(
    `${title} is treated as missing usage: our own count is used, and the row is marked as counted`,
    async (t) => {
      const { status, row, charged } = await send(
        chatPath,
        { model: 'chat', messages, max_tokens: 200 },
        usage,
      );
      t.is(status, 200);
      t.like(row, { success: true, counted: true, shortfallNano: 0n, ...expected });
      t.is(charged, BigInt(row.promptTokens + row.completionTokens) * 10_000n);
    },
  );
}

test.serial(
  'a report slightly above the limit sent to the vendor is plausible, and billed as reported',
  async (t) => {
    const { row } = await send(chatPath, { model: 'chat', messages, max_tokens: 200 }, usageOf(12, 205));
    t.like(row, { counted: false, promptTokens: 12, completionTokens: 205 });
    const unbounded = { model: 'unbounded', messages, max_tokens: 200 };
    t.like((await send(chatPath, unbounded, usageOf(12, 100_000))).row, {
      counted: false,
      completionTokens: 100_000,
    });
    t.like((await send(chatPath, unbounded, usageOf(12, 200_000))).row, {
      counted: true,
      completionTokens: 1,
    });
  },
);

test.serial('reported tokens of a web search that was not requested are implausible', async (t) => {
  const { row } = await send(chatPath, { model: 'searcher', messages }, usageOf(50_000, 1));
  t.like(row, { counted: true, promptTokens, completionTokens: 1 });
});

test.serial('a request costs at most twice its reservation; the operator pays the remainder', async (t) => {
  const body = { model: 'chat', messages, max_tokens: 190 };
  const { row, charged } = await send(chatPath, body, { prompt_tokens: 3_000, completion_tokens: 190 });
  t.like(row, { counted: false, promptTokens: 3_000, completionTokens: 190 });
  // Ten tokens of prompt and 190 of completion were reserved, and the cost is limited to twice that.
  t.is(row.costNano, 2n * 200n * 10_000n);
  t.is(row.costNano + row.shortfallNano, 3_190n * 10_000n);
  t.is(charged, row.costNano);
});

const malayalam = 'ഒരു ചെറിയ വാചകം ഇവിടെ എഴുതിയിരിക്കുന്നു. '.repeat(100);

for (const { title, model, body, prompt } of [
  { title: 'tokens that a vendor adds itself', model: 'chat', body: { messages }, prompt: 700 },
  {
    title: 'a vocabulary with one token per byte',
    model: 'chat',
    body: { messages: [{ role: 'user', content: malayalam }] },
    prompt: Buffer.byteLength(malayalam),
  },
  {
    title: 'many spaces in a row, one token in our vocabulary and many in others',
    model: 'chat',
    body: { messages: [{ role: 'user', content: `a${' '.repeat(20_000)}b` }] },
    prompt: 20_002,
  },
  {
    title: 'an image of the most expensive kind',
    model: 'pictured',
    body: {
      messages: [
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.test/a.png' } }] },
      ],
    },
    prompt: 48_100,
  },
  {
    title: 'a requested search',
    model: 'searcher',
    body: { messages, web_search: true },
    prompt: 90_000,
  },
  { title: 'a search that the vendor always makes', model: 'sonar', body: { messages }, prompt: 90_000 },
  {
    title: 'a search that the vendor always makes, with a small reservation for a short reply',
    model: 'sonar',
    body: { messages, max_tokens: 16 },
    prompt: 15_000,
  },
]) {
  test.serial(`a correct prompt count is billed as reported: ${title}`, async (t) => {
    const { row, charged } = await send(chatPath, { model, ...body }, usageOf(prompt, 1));
    t.like(row, { success: true, counted: false, promptTokens: prompt });
    t.is(charged, BigInt(prompt + 1) * 10_000n);
  });
}

test.serial(
  'for a chat without max_tokens, each reported count is checked, and our own count is billed if one is impossible',
  async (t) => {
    const hi = [{ role: 'user', content: 'hi' }];
    for (const [n, prompt] of [
      [1, 127_000],
      [8, 1_000_000],
    ] as const) {
      const { row, charged } = await send(
        chatPath,
        { model: 'chat', messages: hi, n },
        usageOf(prompt, 1),
        '0.2',
      );
      t.like(row, { counted: true, promptTokens: 8, completionTokens: 1 });
      t.is(charged, 90_000n);
    }
  },
);

const reasoningOf = (words: number): object => ({
  ...chatWithUsage({
    prompt_tokens: 12,
    completion_tokens: words + 1,
    completion_tokens_details: { reasoning_tokens: words },
  }),
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Yes', reasoning_content: ' so'.repeat(words) },
      finish_reason: 'stop',
    },
  ],
});

test.serial(
  'if the reported usage exceeds max_tokens but matches the output, it is accepted, and the operator pays the excess',
  async (t) => {
    nextResponse = reasoningOf(5_000);
    const { row } = await send(chatPath, { model: 'thinker', messages, max_tokens: 16 }, {});
    nextResponse = null;
    t.like(row, { counted: false, promptTokens: 12, completionTokens: 5_001 });
    // Ten tokens of prompt and 16 of completion were reserved, and the cost is limited to twice that.
    t.is(row.costNano, 2n * 26n * 10_000n);
    t.is(row.costNano + row.shortfallNano, 5_013n * 10_000n);
  },
);

test.serial(
  'if a vendor’s output limit excludes reasoning, the reasoning beyond it is reserved and charged',
  async (t) => {
    nextResponse = reasoningOf(5_000);
    const body = { model: 'overrunner', messages, max_tokens: 16 };
    const { row } = await send(chatPath, body, {});
    t.like(row, { counted: false, completionTokens: 5_001, shortfallNano: 0n, costNano: 5_013n * 10_000n });
    nextResponse = null;
    const { apiKey } = await stack.createAccount({ balance: '0.1' });
    t.is((await stack.post(chatPath, apiKey, body)).status, 402);
  },
);

test.serial('if the vendor sends usage only before the output, the output is still charged', async (t) => {
  const chunk = (delta: object, more: object = {}): string =>
    JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...more });
  const words = Array.from({ length: 100 }, () => chunk({ content: ' cat' }));
  const finish = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  const body = { model: 'chat', messages, stream: true, max_tokens: 1_000 };
  for (const [reportedTokens, completionTokens, counted] of [
    [0, 100, true],
    [60, 100, true],
    [130, 130, false],
  ] as const) {
    nextResponse = [
      chunk({ role: 'assistant', content: '' }, { usage: usageOf(12, reportedTokens) }),
      ...words,
      finish,
    ];
    const { row } = await send(chatPath, body, {});
    t.like(row, { success: true, promptTokens: 12, completionTokens, counted }, `${reportedTokens}`);
  }
  nextResponse = null;
});

test.serial(
  'embeddings and images are also billed using our own count if the report is implausible',
  async (t) => {
    const embedding = await send(
      '/v1/embeddings',
      { model: 'vectors', input: ['one two', 'three'] },
      { prompt_tokens: 99_000_000 },
    );
    t.like(embedding.row, { success: true, counted: true, promptTokens: 3 });
    t.is(embedding.charged, 30_000n);
    const image = await send(
      '/v1/images/generations',
      { model: 'pictures', prompt: 'a red fox' },
      { input_tokens: 50_000_000, output_tokens: 50_000_000 },
    );
    t.like(image.row, { success: true, counted: true, promptTokens: 3, completionTokens: 1_290 });
    t.is(image.charged, 1_293n * 10_000n);
  },
);

test.serial(
  'if a vendor reports no tokens for embeddings or images, our own count is billed, and the row is marked as counted',
  async (t) => {
    const input = ['one two', 'three'];
    const embedding = await send('/v1/embeddings', { model: 'vectors', input }, { prompt_tokens: 0 });
    t.like(embedding.row, { success: true, counted: true, promptTokens: 3 });
    t.is(embedding.charged, 30_000n);
    for (const [input_tokens, output_tokens, expected] of [
      [0, 0, { counted: true, promptTokens: 3, completionTokens: 1_290 }],
      [12, 0, { counted: true, promptTokens: 12, completionTokens: 1_290 }],
      [0, 1_100, { counted: true, promptTokens: 3, completionTokens: 1_100 }],
      [12, 1_100, { counted: false, promptTokens: 12, completionTokens: 1_100 }],
    ] as const) {
      const body = { model: 'pictures', prompt: 'a red fox' };
      const { row, charged } = await send('/v1/images/generations', body, { input_tokens, output_tokens });
      t.like(row, { success: true, ...expected });
      t.is(charged, BigInt(expected.promptTokens + expected.completionTokens) * 10_000n);
    }
  },
);

test.serial('images priced per token are charged even if their vendor reports no usage', async (t) => {
  const { row, charged } = await send(
    '/v1/images/generations',
    { model: 'pictures', prompt: 'a red fox' },
    {},
  );
  t.like(row, { success: true, counted: true, promptTokens: 3, completionTokens: 1_290 });
  t.is(charged, 1_293n * 10_000n);
});

test.serial('the ledger is exact after all of these requests', async (t) => {
  const { differences } = await readAdmin<{ differences: object[] }>(stack.env, 'ledger', 'verify');
  t.deepEqual(differences, []);
});
