import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { makePdf, toDataUri } from '../support/make-pdf.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';

/** Attempts to get vendor work for free with requests that hide tokens in places that might not be tokenized. */

const catalogOf = (vendorUrl: string, scriptedUrl: string): string => {
  const chat = (id: string, more: string): string =>
    `  - { id: ${id}, type: chat, pricing: { prompt: 100, completion: 100 }, ${more} }`;
  const openai = 'routes: [{ upstream: vendor, model: gpt-sim }]';
  return `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [k] }
  claude: { kind: anthropic, baseUrl: "${vendorUrl}", apiKeys: [k] }
  scripted: { kind: openai, baseUrl: "${scriptedUrl}/v1", apiKeys: [k] }
models:
${chat('large', `context: 128000, max_output_tokens: 4000, supported_file_types: [pdf, txt, docx], ${openai}`)}
${chat('huge', `context: 4000000, max_output_tokens: 4000, supported_file_types: [pdf], ${openai}`)}
${chat('claude', 'context: 128000, max_output_tokens: 4000, supported_file_types: [pdf, txt], routes: [{ upstream: claude, model: claude-sonnet-4-5 }]')}
${chat('words-only', `context: 8192, input_modalities: [text], ${openai}`)}
${chat('hears', `context: 8192, input_modalities: [text, audio], ${openai}`)}
${chat('unknown', `context: 8192, ${openai}`)}
${chat('thinker', 'context: 8192, routes: [{ upstream: scripted, model: thinker }]')}
  - { id: painter, type: image, context: 500, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: gpt-image-sim }] }
  - { id: by-character, type: image, context: 500, pricing: { type: characters, cost_per_million: 1000 }, routes: [{ upstream: vendor, model: gpt-image-characters }] }
  - { id: by-token, type: image, context: 500, max_output_tokens: 10, pricing: { type: tokens, prompt: 1000000, completion: 0 }, routes: [{ upstream: vendor, model: gpt-image-tokens }] }
`;
};

interface Body {
  readonly messages: readonly Record<string, unknown>[];
}

let vendor: VendorSimulator;
let scripted: ScriptedVendor;
let stack: TestStack;
/** Request bodies that the scripted vendor received. */
const sent: Body[] = [];

/** A model that calls the tool `f` after each user message, always with the same call id, and never reports usage. */
function think(body: Body): object {
  sent.push(body);
  const last = body.messages.at(-1)!;
  const userText = String(body.messages.findLast(({ role }) => role === 'user')?.['content']);
  const steps = body.messages.filter(({ role }) => role === 'tool').length;
  const system = JSON.stringify(body.messages.find(({ role }) => role === 'system')?.['content'] ?? null);
  const call = { id: 'functions.f:0', type: 'function', function: { name: 'f', arguments: '{}' } };
  const message =
    last['content'] === 'enough'
      ? { role: 'assistant', content: 'Done.' }
      : {
          role: 'assistant',
          content: null,
          reasoning_content: `Thought ${steps} about ${userText}, told ${system}. ${'So it is. '.repeat(50)}`,
          tool_calls: [call],
        };
  return {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'thinker',
    choices: [{ index: 0, message, finish_reason: message.content === null ? 'tool_calls' : 'stop' }],
  };
}

test.before(async () => {
  vendor = await startVendorSimulator({ promptTokens: 'received' });
  scripted = await startScriptedVendor((body) => think(body as unknown as Body));
  stack = await startStack({ catalog: catalogOf(vendor.url, scripted.url) });
});
test.after.always(async () => {
  await stack.close();
  await Promise.all([vendor.close(), scripted.close()]);
});

interface ChatResponse {
  readonly choices: readonly { readonly message: { readonly tool_calls?: readonly object[] } }[];
  readonly usage: { readonly prompt_tokens: number };
  readonly error: { readonly code: string; readonly message: string };
  readonly detail?: readonly { readonly loc: readonly (string | number)[] }[];
}

async function post(
  path: string,
  { apiKey }: TestAccount,
  body: object,
): Promise<{ status: number; result: ChatResponse }> {
  const response = await stack.post(path, apiKey, body);
  return { status: response.status, result: (await response.json()) as ChatResponse };
}

const chat = (account: TestAccount, body: object): ReturnType<typeof post> =>
  post('/v1/chat/completions', account, body);
const draw = (account: TestAccount, body: object): ReturnType<typeof post> =>
  post('/v1/images/generations', account, body);
const go = { role: 'user', content: 'go' };
/** About 150 000 tokens. */
const longText = 'four words of text '.repeat(37_500);
const hiddenIn = (text: string): Record<string, object[]> => ({
  reasoning_content: [go, { role: 'assistant', content: 'ok', reasoning_content: text }, go],
  'tool_calls[].id': [
    go,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: text, function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'ok' },
  ],
  tool_call_id: [go, { role: 'tool', tool_call_id: text, content: 'ok' }],
  'audio.id': [go, { role: 'assistant', content: 'ok', audio: { id: text } }, go],
});

for (const [place, messages] of Object.entries(hiddenIn(longText))) {
  test(`a prompt longer than the context is rejected if it is hidden in ${place}`, async (t) => {
    const account = await stack.createAccount({ balance: '1000' });
    const { status, result } = await chat(account, { model: 'large', messages });
    t.is(status, 400);
    t.is(result.error.code, 'context_length_exceeded');
  });
}

test('forty concurrent requests get no more from a vendor than the balance covers', async (t) => {
  const account = await stack.createAccount({ balance: '1' });
  // Each request would cost four roubles.
  const bodies = Object.values(hiddenIn('four words of text '.repeat(10_000)));
  const responses = await Promise.all(
    Array.from({ length: 40 }, (_, index) => {
      const messages = bodies[index % bodies.length]!;
      return chat(account, { model: 'large', messages, max_tokens: 16, user: account.id });
    }),
  );
  t.deepEqual(new Set(responses.map(({ status }) => status)), new Set([402]));
  t.deepEqual(
    vendor.requests.entries.filter(({ body }) => body?.['user'] === account.id),
    [],
  );
});

test('the prompt tokens billed by a vendor stay within their reservation', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const [messages = []] = Object.values(hiddenIn('four words of text '.repeat(5_000)));
  const { status, result } = await chat(account, { model: 'large', messages, max_tokens: 16 });
  t.is(status, 200, JSON.stringify(result));
  t.true(result.usage.prompt_tokens > 20_000);
  const row = await stack.mongo.db.collection('charges').findOne({ accountId: account.id });
  t.falsy(row?.['shortfallNano']);
});

// Files

const withFile = (file: object): object[] => [{ role: 'user', content: [{ type: 'file', file }] }];
const pdf = (bytes: Buffer): object[] => withFile({ filename: 'a.pdf', file_data: toDataUri(bytes) });
/** A few KB with some 200 000 tokens, most of them beyond the edge of the page. */
const densePdf = makePdf(['four words of text '.repeat(4)], { repeat: 12_000 });

test('the text of a small, dense PDF counts against the context and is included in the reservation', async (t) => {
  t.true(densePdf.length < 10_000);
  const account = await stack.createAccount({ balance: '1' });
  const tooLong = await chat(account, { model: 'large', messages: pdf(densePdf) });
  t.is(tooLong.status, 400);
  t.is(tooLong.result.error.code, 'context_length_exceeded');
  const inContext = await chat(account, { model: 'huge', messages: pdf(densePdf), max_tokens: 16 });
  t.is(inContext.status, 402);
});

test('the text of a form drawn on many pages of a PDF is tokenized once per page', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const text = 'four words of text '.repeat(100);
  const bytes = makePdf(
    Array.from({ length: 20 }, () => 'page'),
    { form: { text, paints: 20 } },
  );
  t.true(bytes.length < 20_000);
  const { status, result } = await chat(account, { model: 'large', messages: pdf(bytes) });
  t.is(status, 400);
  t.is(result.error.code, 'context_length_exceeded');
});

test('PDF pages without text are estimated as images', async (t) => {
  const account = await stack.createAccount({ balance: '1' });
  const pages = Array.from({ length: 60 }, () => '');
  const { status } = await chat(account, { model: 'large', messages: pdf(makePdf(pages)), max_tokens: 16 });
  t.is(status, 402);
});

test('an unreadable PDF is rejected with advice', async (t) => {
  const account = await stack.createAccount();
  const encrypt =
    '/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <' +
    '00'.repeat(32) +
    '> /U <' +
    '00'.repeat(32) +
    '> >> /ID [<00> <00>]';
  for (const [bytes, message] of [
    [Buffer.from('%PDF-1.4 nothing but a head'), /cannot be read: it is damaged/],
    [makePdf(['secret'], { trailer: encrypt }), /is password-protected/],
  ] as const) {
    const { status, result } = await chat(account, { model: 'large', messages: pdf(bytes) });
    t.is(status, 422);
    t.is(result.error.code, 'validation_failed');
    t.regex(result.error.message, message);
  }
});

test('documents of an account with an empty balance are not parsed', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  const { status } = await chat(account, { model: 'large', messages: pdf(Buffer.from('%PDF-1.4')) });
  t.is(status, 402);
});

test('text files are tokenized regardless of their name', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  for (const model of ['large', 'claude']) {
    const file_data = toDataUri(Buffer.from('four words of text '.repeat(100)), 'text/plain');
    const small = await chat(account, { model, messages: withFile({ filename: 'a.txt', file_data }) });
    t.is(small.status, 200, JSON.stringify(small.result));
    const large = toDataUri(Buffer.from(longText), 'text/plain');
    const { result } = await chat(account, {
      model,
      messages: withFile({ filename: 'a.txt', file_data: large }),
    });
    t.is(result.error?.code, 'context_length_exceeded');
  }
});

// Content parts and fields that a model does not support

const imagePart = { type: 'image_url', image_url: { url: 'https://a.test/a.png' } };
const audioPart = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };

test('an unsupported content part is rejected with its position', async (t) => {
  const account = await stack.createAccount();
  const send = (model: string, part: object): ReturnType<typeof post> =>
    chat(account, {
      model,
      messages: [go, { role: 'user', content: [{ type: 'text', text: 'see' }, part] }],
    });
  for (const [model, part] of [
    ['words-only', imagePart],
    ['words-only', audioPart],
    ['words-only', { image_url: imagePart.image_url }],
    ['hears', imagePart],
  ] as const) {
    const { status, result } = await send(model, part);
    t.is(status, 422);
    t.deepEqual(result.detail?.[0]?.loc, ['body', 'messages', 1, 'content', 1]);
    t.regex(result.error.message, /remove this part, or choose another model/);
  }
  t.is((await send('hears', audioPart)).status, 200);
  t.is((await send('unknown', imagePart)).status, 200);
});

test('if no model edits images, an input image is rejected, but an empty one is ignored', async (t) => {
  const account = await stack.createAccount();
  const body = { model: 'painter', prompt: 'a fox' };
  for (const image_url of ['https://a.test/a.png', ['https://a.test/a.png'], 'AAAA']) {
    const { status, result } = await draw(account, { ...body, image_url });
    t.is(status, 422);
    t.deepEqual(result.detail?.[0]?.loc, ['body', 'image_url']);
    t.regex(result.error.message, /remove image_url/);
  }
  for (const image_url of [null, '', []]) t.is((await draw(account, { ...body, image_url })).status, 200);
});

test('negative_prompt and style are included in the context limit like the prompt', async (t) => {
  const account = await stack.createAccount();
  const long = 'four words of text '.repeat(100);
  for (const [field, body] of [
    ['prompt', { prompt: `${long}${long}` }],
    ['negative_prompt', { prompt: 'a fox', negative_prompt: 'x'.repeat(28_000_000) }],
    ['negative_prompt', { prompt: long, negative_prompt: long }],
    ['style', { prompt: long, style: long }],
  ] as const) {
    const { status, result } = await draw(account, { model: 'painter', ...body });
    t.is(status, 422);
    t.is(result.error.code, 'content_too_long');
    t.deepEqual(result.detail?.[0]?.loc, ['body', field]);
  }
});

test('negative_prompt and style are charged at prices per character and per token', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const prompt = 'a fox';
  const more = { negative_prompt: 'n'.repeat(40), style: 's'.repeat(60) };
  const costOf = async (model: string, body: object): Promise<number> => {
    const { status, result } = await draw(account, { model, prompt, ...body });
    t.is(status, 200, JSON.stringify(result));
    return (result.usage as unknown as { cost_request: number }).cost_request;
  };
  t.is(await costOf('by-character', {}), 0.005);
  t.is(await costOf('by-character', more), 0.105);
  t.true((await costOf('by-token', more)) > (await costOf('by-token', {})));
});

// Reasoning that is stored between conversation turns

async function converse(
  account: TestAccount,
  word: string,
  turns: number,
  instructions: readonly object[] = [],
): Promise<object[]> {
  const messages: object[] = [...instructions, { role: 'user', content: word }];
  for (let turn = 0; turn < turns; turn += 1) {
    const { status, result } = await chat(account, { model: 'thinker', messages });
    if (status !== 200) throw new Error(JSON.stringify(result));
    const { tool_calls: calls } = result.choices[0]!.message;
    messages.push({ role: 'assistant', content: null, tool_calls: calls });
    messages.push({ role: 'tool', tool_call_id: 'functions.f:0', content: `result of ${word}` });
  }
  return messages;
}

/** The reasoning in the last request of the conversation that starts with this word. */
const reasoningSentFor = (word: string): unknown[] =>
  sent
    .findLast(({ messages }) => messages[0]?.['content'] === word)!
    .messages.filter(({ role }) => role === 'assistant')
    .map(({ reasoning_content: thought }) => /Thought \d about \w+/.exec(String(thought))?.[0] ?? null);

test('a conversation gets back its own reasoning even if a vendor gives all calls the same id', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const [alpha, beta] = await Promise.all([converse(account, 'alpha', 2), converse(account, 'beta', 2)]);
  for (const [word, messages] of [
    ['alpha', alpha],
    ['beta', beta],
  ] as const) {
    await chat(account, { model: 'thinker', messages });
    t.deepEqual(reasoningSentFor(word), [`Thought 0 about ${word}`, `Thought 1 about ${word}`]);
  }
  // Another conversation that sends the same tool call gets none of the reasoning.
  const [, ...rest] = alpha;
  await chat(account, { model: 'thinker', messages: [{ role: 'user', content: 'gamma' }, ...rest] });
  t.deepEqual(reasoningSentFor('gamma'), [null, null]);
});

test('two end users with the same message each get back their own reasoning', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const instructions = (name: string): object[] => [{ role: 'system', content: `The user is ${name}.` }];
  const ann = await converse(account, 'balance', 1, instructions('Ann'));
  const bob = await converse(account, 'balance', 1, instructions('Bob'));
  for (const [name, messages] of [
    ['Ann', ann],
    ['Bob', bob],
  ] as const) {
    await chat(account, { model: 'thinker', messages });
    // In another test that runs concurrently, the same two users send a different message.
    const isTheirMessage = ({ content }: Body['messages'][number]): boolean => content === 'balance';
    const theirs = sent.findLast(
      ({ messages: [first, ...rest] }) =>
        String(first?.['content']).includes(name) && rest.some(isTheirMessage),
    );
    const assistantMessage = theirs!.messages[2];
    t.regex(String(assistantMessage!['reasoning_content']), new RegExp(`told "The user is ${name}`));
  }
});

test('an end user without stored reasoning does not get the reasoning of another who sent the same message', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const messages = await converse(account, 'pin', 1, [{ role: 'system', content: 'The user is Ann.' }]);
  const [instructions, userMessage, ...rest] = messages;
  const bob = { role: 'system', content: 'The user is Bob.' };
  const tools = [{ type: 'function', function: { name: 'f', description: 'Reads the account of Bob.' } }];
  const others: object[] = [
    { messages: [bob, userMessage, ...rest] },
    { messages: [userMessage, ...rest] },
    { messages: [{ ...instructions, name: 'bob' }, userMessage, ...rest] },
    { messages: [instructions, { ...userMessage, name: 'bob' }, ...rest] },
    { messages, user: 'bob' },
    { messages, tools },
  ];
  for (const other of [...others, { messages }]) {
    await chat(account, { model: 'thinker', ...other });
    const last = sent.findLast((body) => body.messages.some(({ content }) => content === 'pin'))!;
    const thoughts = last.messages.filter(({ reasoning_content: thought }) => thought !== undefined);
    t.is(thoughts.length, others.includes(other) ? 0 : 1, JSON.stringify(other));
  }
});

test('if another account sends the same conversation, it does not get the stored reasoning', async (t) => {
  const [owner, other] = await Promise.all([
    stack.createAccount({ balance: '1000' }),
    stack.createAccount({ balance: '1000' }),
  ]);
  const messages = await converse(owner, 'delta', 1);
  await chat(other, { model: 'thinker', messages });
  t.deepEqual(reasoningSentFor('delta'), [null]);
});

test('stored reasoning that the gateway adds is tokenized, reserved and charged', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const messages = await converse(account, 'epsilon', 1);
  const withReasoning = await chat(account, { model: 'thinker', messages });
  const otherAccount = await stack.createAccount({ balance: '1000' });
  const withoutReasoning = await chat(otherAccount, { model: 'thinker', messages });
  t.true(withReasoning.result.usage.prompt_tokens > withoutReasoning.result.usage.prompt_tokens + 150);
});
