import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { redisChannels } from '../../shared/redis/redis-keys.ts';
import { startChat, type DisconnectingCaller } from '../support/disconnecting-caller.ts';
import { findReservations, findRow, readLoss, waitForNoReservation } from '../support/observe.ts';
import { useScriptedStack } from '../support/scripted-stack.ts';
import { chatWithUsage, type Script, type ScriptedCall } from '../support/scripted-vendor.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { listenTo } from '../support/listen-to.ts';
import { WorkerRegistryStore } from '../../shared/queue/worker-registry-store.ts';

/**
 * Callers that disconnect are charged for what the vendor did, whenever they disconnect, and for no more than was
 * reserved.
 */

/** How long the upstream `brief` reads a stream after a disconnect. */
const graceMs = 300;

const catalogOf = (url: string): string => {
  const model = (id: string, upstream: string, more = '', route = ''): string =>
    `  - { id: ${id}, type: chat, context: 128000, pricing: { prompt: 1000, completion: 1000, free_requests: true }${more}, routes: [{ upstream: ${upstream}, model: ${id}${route} }] }`;
  return `
upstreams:
  patient: { kind: openai, baseUrl: "${url}/v1", disconnectGraceMs: 20000 }
  brief: { kind: openai, baseUrl: "${url}/v1", disconnectGraceMs: ${graceMs} }
  hasty: { kind: openai, baseUrl: "${url}/v1", disconnectGraceMs: 0 }
  impatient: { kind: openai, baseUrl: "${url}/v1", timeoutMs: 5000, disconnectGraceMs: 0 }
  narrow: { kind: openai, baseUrl: "${url}/v1", maxConcurrency: 1 }
  anthropic: { kind: anthropic, baseUrl: "${url}", apiKeys: [sk-ant-0123456789], disconnectGraceMs: 20000 }
  gemini: { kind: gemini, baseUrl: "${url}", apiKeys: [AIza-0123456789], disconnectGraceMs: 20000 }
models:
${model('plain', 'patient')}
${model('plain-brief', 'brief')}
${model('plain-hasty', 'hasty')}
${model('thinker', 'brief', ', reasoning: true')}
${model('painter', 'brief', ', output_modalities: [text, image]')}
${model('searcher', 'brief', ', web_search: true')}
${model('sonar', 'brief', ', web_search: always')}
${model('drained', 'hasty', '', ', onDisconnect: drain')}
${model('narrow', 'narrow')}
  - { id: twofold, type: chat, context: 128000, pricing: { prompt: 1000, completion: 1000, free_requests: true }, routes: [{ upstream: impatient, model: a }, { upstream: impatient, model: b }] }
${model('claude', 'anthropic', ', reasoning: true')}
${model('gem', 'gemini', ', reasoning: true')}
`;
};

let stack: TestStack;

const addScript = useScriptedStack(test, catalogOf, (started) => {
  stack = started;
});

/** A promise that the other side resolves. */
interface Deferred {
  readonly promise: Promise<void>;
  resolve(): void;
}

function createDeferred(): Deferred {
  let resolveNow = (): void => undefined;
  const promise = new Promise<void>((resolvePromise) => {
    resolveNow = resolvePromise;
  });
  return { promise, resolve: () => resolveNow() };
}

const chunk = (delta: object, more: object = {}): string =>
  JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...more });
const finish = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
const usage = (prompt: number, completion: number): object => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion },
});

interface TestChat {
  readonly account: TestAccount;
  readonly body: object;
}

/** Creates an account, and the body of a chat with its own script. */
async function prepareChat(
  model: string,
  script: Script,
  {
    stream = true,
    freeRequests = 0,
    ...more
  }: { stream?: boolean; freeRequests?: number; max_tokens?: number } = {},
): Promise<TestChat> {
  const messages = addScript(script);
  const account = await stack.createAccount({ balance: '1000', freeRequests });
  return { account, body: { model, stream, messages, max_tokens: 20_000, ...more } };
}

/** Disconnects, and resolves once the worker has been told to cancel. */
async function disconnectAndWait(
  t: ExecutionContext,
  { account }: TestChat,
  caller: DisconnectingCaller,
): Promise<void> {
  const [requestId] = await findReservations(stack, account.id);
  const workers = await new WorkerRegistryStore(stack.redis).findAlive('chat');
  const controlMessages = await listenTo(
    t,
    stack.config.redisUrl,
    ...Array.from(workers, redisChannels.control),
  );
  caller.leave();
  for (;;) {
    const message = JSON.parse((await controlMessages.receive()).toString()) as {
      action?: string;
      requestId?: string;
    };
    if (message.action === 'cancel' && message.requestId === requestId) break;
  }
  controlMessages.close();
}

/**
 * Returns the log row of the account's only request once it is settled. Its cost is what the account lost.
 */
async function waitForSettledRow(t: ExecutionContext, { account }: TestChat): Promise<RequestLogDocument> {
  await waitForNoReservation(stack, account.id);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const row = await waitFor('the log row', () => rows.findOne({ accountId: account.id }));
  t.is(await readLoss(stack, account.id, '1000'), row.costNano);
  return row;
}

const disconnectedRow = { success: false, responseCode: 499, errorCode: 'job_cancelled' };
/** At a thousand roubles per million tokens, both prompt and completion. */
const costOf = ({ promptTokens, completionTokens }: RequestLogDocument): bigint =>
  BigInt(promptTokens + completionTokens) * 1_000_000n;

const claudeEvents = {
  start: JSON.stringify({
    type: 'message_start',
    message: { role: 'assistant', content: [], usage: { input_tokens: 20, output_tokens: 1 } },
  }),
  open: JSON.stringify({
    type: 'content_block_start',
    index: 0,
    content_block: { type: 'text', text: '' },
  }),
  word: JSON.stringify({
    type: 'content_block_delta',
    index: 0,
    delta: { type: 'text_delta', text: 'last' },
  }),
  close: JSON.stringify({ type: 'content_block_stop', index: 0 }),
  end: JSON.stringify({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn' },
    usage: { output_tokens: 10_000 },
  }),
};

for (const { dialect, model, before, after } of [
  {
    dialect: 'OpenAI’s',
    model: 'plain',
    before: [chunk({ content: 'last' })],
    after: [finish, JSON.stringify({ choices: [], ...usage(20, 10_000) })],
  },
  {
    dialect: 'Anthropic’s',
    model: 'claude',
    before: [claudeEvents.start, claudeEvents.open, claudeEvents.word],
    after: [claudeEvents.close, claudeEvents.end],
  },
]) {
  test(`a stream of ${dialect} API that is aborted after its last token is charged by the usage that follows it`, async (t) => {
    const disconnected = createDeferred();
    let cut: Promise<void> | null = null;
    const chat = await prepareChat(model, async function* (_body, _path, call: ScriptedCall) {
      cut = call.cut;
      yield* before;
      await disconnected.promise;
      yield* after;
      // The script does not end by itself: the call is aborted early because the usage is known.
      await call.cut;
    });
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await caller.readUntil('last');
    caller.leave();
    disconnected.resolve();
    const row = await waitForSettledRow(t, chat);
    t.like(row, { ...disconnectedRow, promptTokens: 20, completionTokens: 10_000, counted: false });
    t.is(row.costNano, 10_020_000_000n);
    await cut!;
  });
}

const geminiChunk = (parts: object[], counts: object): string =>
  JSON.stringify({
    candidates: parts.length === 0 ? [] : [{ index: 0, content: { role: 'model', parts } }],
    usageMetadata: { promptTokenCount: 20, ...counts },
  });

test('a disconnected stream of Gemini’s API is charged immediately by the counts of its last chunk', async (t) => {
  let cut: Promise<void> | null = null;
  const chat = await prepareChat('gem', async function* (_body, _path, call: ScriptedCall) {
    cut = call.cut;
    yield geminiChunk([], { thoughtsTokenCount: 9_990 });
    yield geminiChunk([{ text: 'last' }], { thoughtsTokenCount: 9_990, candidatesTokenCount: 10 });
    await call.cut;
  });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('last');
  caller.leave();
  await cut!;
  const row = await waitForSettledRow(t, chat);
  t.like(row, { ...disconnectedRow, promptTokens: 20, completionTokens: 10_000, counted: false });
  t.is(row.costNano, 10_020_000_000n);
});

test('a disconnect before the first output is charged for the reasoning, by the usage on every chunk', async (t) => {
  const reasoned = createDeferred();
  let cut: Promise<void> | null = null;
  const chat = await prepareChat('plain', async function* (_body, _path, call: ScriptedCall) {
    cut = call.cut;
    yield chunk({ role: 'assistant', content: '' }, usage(20, 0));
    for (let tokens = 1_000; tokens <= 10_000; tokens += 1_000) {
      yield JSON.stringify({ choices: [], ...usage(20, tokens) });
    }
    reasoned.resolve();
    await call.cut;
  });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await reasoned.promise;
  caller.leave();
  // The call is aborted as soon as all of it is known to be counted.
  await cut!;
  const row = await waitForSettledRow(t, chat);
  t.like(row, { ...disconnectedRow, promptTokens: 20, completionTokens: 10_000, counted: false });
});

/** A stream that sends these chunks and then nothing more, until it is aborted. */
const sendAndWait = (chunks: readonly string[], onSaid: () => void = () => undefined): Script =>
  async function* (_body, _path, call: ScriptedCall) {
    yield* chunks;
    onSaid();
    await call.cut;
  };

for (const { what, model, sentChunk, minTokens } of [
  {
    what: 'a model that reasons',
    model: 'thinker',
    sentChunk: chunk({ content: 'last' }),
    minTokens: graceMs,
  },
  {
    what: 'a model that draws',
    model: 'painter',
    sentChunk: chunk({
      content: 'last',
      images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }],
    }),
    minTokens: 1_290 + graceMs,
  },
]) {
  test(`after a disconnect before its usage, ${what} is charged for what it can have generated, by our count`, async (t) => {
    const startedAtMs = performance.now();
    const chat = await prepareChat(model, sendAndWait([sentChunk]));
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await caller.readUntil('last');
    caller.leave();
    const row = await waitForSettledRow(t, chat);
    const maxTokens = 1_290 + 10 + performance.now() - startedAtMs;
    t.like(row, { ...disconnectedRow, counted: true });
    t.true(row.completionTokens >= minTokens && row.completionTokens <= maxTokens, `${row.completionTokens}`);
    t.is(row.costNano, costOf(row));
  });
}

test('the charge for possible unseen output never exceeds the reservation', async (t) => {
  const chat = await prepareChat('thinker', sendAndWait([chunk({ content: 'last' })]), { max_tokens: 50 });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('last');
  caller.leave();
  t.like(await waitForSettledRow(t, chat), { ...disconnectedRow, counted: true, completionTokens: 50 });
});

test('a search whose caller disconnects is charged for the prompt and what the search may have found', async (t) => {
  const called = createDeferred();
  const chat = await prepareChat(
    'searcher',
    sendAndWait([], () => called.resolve()),
  );
  const caller = startChat(stack, chat.account.apiKey, { ...chat.body, web_search: true });
  await called.promise;
  caller.leave();
  const row = await waitForSettledRow(t, chat);
  t.like(row, { ...disconnectedRow, counted: true });
  t.true(row.promptTokens > 16_000 && row.promptTokens < 16_100, `${row.promptTokens}`);
});

for (const { what, model, maxTokens } of [
  { what: 'a model that always searches', model: 'sonar', maxTokens: 16_100 },
  { what: 'a model that could have searched but was not asked to', model: 'searcher', maxTokens: 100 },
]) {
  test(`after a disconnect at its last token, ${what} is charged for a prompt of at most ${maxTokens} tokens`, async (t) => {
    const chat = await prepareChat(model, sendAndWait([chunk({ content: 'last' })]), { max_tokens: 16 });
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await caller.readUntil('last');
    caller.leave();
    const row = await waitForSettledRow(t, chat);
    t.like(row, { ...disconnectedRow, counted: true });
    t.true(row.promptTokens > maxTokens - 100 && row.promptTokens <= maxTokens, `${row.promptTokens}`);
    t.is(row.costNano, costOf(row));
  });
}

test('a model without hidden output is charged for the output seen, including output after the disconnect', async (t) => {
  const disconnected = createDeferred();
  const chat = await prepareChat('plain-brief', async function* (_body, _path, call: ScriptedCall) {
    yield chunk({ content: 'one' });
    await disconnected.promise;
    yield chunk({ content: ' two' });
    await call.cut;
  });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('one');
  caller.leave();
  disconnected.resolve();
  t.like(await waitForSettledRow(t, chat), { ...disconnectedRow, counted: true, completionTokens: 2 });
});

test('a disconnect before any output is charged for the prompt, and uses up a free request', async (t) => {
  const called = [createDeferred(), createDeferred()] as const;
  let calls = 0;
  const script = sendAndWait([], () => called[calls++]!.resolve());
  const chat = await prepareChat('plain-brief', script, { freeRequests: 1 });
  for (const eachCall of called) {
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await eachCall.promise;
    caller.leave();
    await waitForNoReservation(stack, chat.account.id);
  }
  t.is((await stack.readAccount(chat.account.id)).freeRequests, 0);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const paidRow = await waitFor('the log row', () =>
    rows.findOne({ accountId: chat.account.id, free: false }),
  );
  t.like(paidRow, { ...disconnectedRow, counted: true, completionTokens: 0 });
  t.is(await readLoss(stack, chat.account.id, '1000'), paidRow.costNano);
  t.is(paidRow.costNano, BigInt(paidRow.promptTokens) * 1_000_000n);
  t.true(paidRow.promptTokens > 5);
});

for (const model of ['plain-hasty', 'thinker']) {
  test(`a non-streamed response is read to its end after a disconnect, and charged as reported: ${model}`, async (t) => {
    const [called, disconnected] = [createDeferred(), createDeferred()];
    const chat = await prepareChat(
      model,
      async () => {
        called.resolve();
        await disconnected.promise;
        return chatWithUsage({ prompt_tokens: 20, completion_tokens: 10_000 });
      },
      { stream: false },
    );
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await called.promise;
    await disconnectAndWait(t, chat, caller);
    // Longer than a stream would still be read.
    await delay(2 * graceMs);
    disconnected.resolve();
    t.like(await waitForSettledRow(t, chat), {
      ...disconnectedRow,
      promptTokens: 20,
      completionTokens: 10_000,
      counted: false,
    });
  });
}

for (const what of ['never comes', 'breaks off'] as const) {
  test(`a non-streamed response that ${what} is free, and is not retried after a disconnect`, async (t) => {
    const [called, disconnected] = [createDeferred(), createDeferred()];
    let calls = 0;
    const chat = await prepareChat(
      'twofold',
      async (_body, _path, call) => {
        calls += 1;
        called.resolve();
        await (what === 'breaks off' ? disconnected.promise : call.cut);
        throw new Error('the vendor fails');
      },
      { stream: false, freeRequests: 1 },
    );
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await called.promise;
    await disconnectAndWait(t, chat, caller);
    disconnected.resolve();
    t.like(await waitForSettledRow(t, chat), { ...disconnectedRow, costNano: 0n });
    t.is((await stack.readAccount(chat.account.id)).freeRequests, 1);
    t.is(calls, 1);
  });
}

test('a stream on a route that drains is read to its end and charged as reported', async (t) => {
  const disconnected = createDeferred();
  const chat = await prepareChat('drained', async function* () {
    yield chunk({ content: 'one' }, usage(20, 1));
    yield chunk({ content: 'two' }, usage(20, 2));
    await disconnected.promise;
    // Longer than a route that cancels would be read, and with usage that would be enough for it.
    for (let i = 0; i < 5; i++) yield chunk({ content: 'more' }, usage(20, 100 * (i + 1)));
    yield finish;
    yield JSON.stringify({ choices: [], ...usage(20, 10_000) });
    yield '[DONE]';
  });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('two');
  await disconnectAndWait(t, chat, caller);
  disconnected.resolve();
  t.like(await waitForSettledRow(t, chat), {
    ...disconnectedRow,
    promptTokens: 20,
    completionTokens: 10_000,
    counted: false,
  });
});

test('a vendor failure after a disconnect is charged for the output seen, and is free before any output', async (t) => {
  for (const chunks of [[], [chunk({ content: 'last' })]]) {
    const [called, disconnected] = [createDeferred(), createDeferred()];
    const chat = await prepareChat('thinker', async function* () {
      yield* chunks;
      called.resolve();
      await disconnected.promise;
      yield JSON.stringify({ error: { message: 'overloaded', type: 'server_error', code: null } });
    });
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await called.promise;
    if (chunks.length > 0) await caller.readUntil('last');
    await disconnectAndWait(t, chat, caller);
    disconnected.resolve();
    const row = await waitForSettledRow(t, chat);
    t.like(row, { ...disconnectedRow, counted: true, completionTokens: chunks.length });
    t.is(row.costNano, chunks.length === 0 ? 0n : costOf(row));
  }
});

test('a disconnect while the request waits for a vendor slot is free and not logged', async (t) => {
  const [called, finished] = [createDeferred(), createDeferred()];
  const blockingChat = await prepareChat(
    'narrow',
    async () => {
      called.resolve();
      await finished.promise;
      return chatWithUsage({ prompt_tokens: 20, completion_tokens: 1 });
    },
    { stream: false },
  );
  const first = startChat(stack, blockingChat.account.apiKey, blockingChat.body);
  await called.promise;
  let wasCalled = false;
  const chat = await prepareChat('narrow', () => {
    wasCalled = true;
    return chatWithUsage({});
  });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await waitFor('the reservation', async () => (await stack.readAccount(chat.account.id)).reservedNano > 0n);
  caller.leave();
  await waitForNoReservation(stack, chat.account.id);
  t.is(await readLoss(stack, chat.account.id, '1000'), 0n);
  finished.resolve();
  await first.rest();
  t.false(wasCalled);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  await findRow(stack, first.requestId());
  t.is(await rows.countDocuments({ accountId: chat.account.id }), 0);
});
