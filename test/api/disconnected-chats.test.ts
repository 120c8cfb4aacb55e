import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { redisChannels, redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { startChat, type DisconnectingCaller } from '../support/disconnecting-caller.ts';
import { findReservations, findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { useScriptedStack } from '../support/scripted-stack.ts';
import { chatWithUsage, type Script, type ScriptedCall } from '../support/scripted-vendor.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { maxStepMs } from '../../workers/runs/choice-silence.ts';
import { listenTo } from '../support/listen-to.ts';
import { sendControl } from '../../shared/work/replies/worker-control.ts';
import { WorkerRegistryStore } from '../../shared/work/queue/worker-registry-store.ts';

/**
 * Callers that disconnect pay for the vendor's work until the call ends, but never more than was reserved.
 */

/** How long the upstream `short-grace` reads a stream after a disconnect. */
const graceMs = 300;

const catalogOf = (url: string): string => {
  const model = (id: string, upstream: string, more = '', route = ''): string =>
    `  - { id: ${id}, type: chat, context: 128000, pricing: { prompt: 1000, completion: 1000, free_requests: true }${more}, routes: [{ upstream: ${upstream}, model: ${id}${route} }] }`;
  return `
upstreams:
  long-grace: { kind: openai, baseUrl: "${url}/v1", disconnectGraceMs: 20000 }
  short-grace: { kind: openai, baseUrl: "${url}/v1", disconnectGraceMs: ${graceMs} }
  no-grace: { kind: openai, baseUrl: "${url}/v1", disconnectGraceMs: 0 }
  short-timeout: { kind: openai, baseUrl: "${url}/v1", timeoutMs: 5000, disconnectGraceMs: 0 }
  one-slot: { kind: openai, baseUrl: "${url}/v1", maxConcurrency: 1 }
  anthropic: { kind: anthropic, baseUrl: "${url}", apiKeys: [sk-ant-0123456789], disconnectGraceMs: 20000 }
  gemini: { kind: gemini, baseUrl: "${url}", apiKeys: [AIza-0123456789], disconnectGraceMs: 20000 }
models:
${model('plain', 'long-grace')}
${model('plain-short-grace', 'short-grace')}
${model('plain-no-grace', 'no-grace')}
${model('thinker', 'short-grace', ', reasoning: true')}
${model('painter', 'short-grace', ', output_modalities: [text, image]')}
${model('searcher', 'short-grace', ', web_search: true')}
${model('sonar', 'short-grace', ', web_search: always')}
${model('drained', 'no-grace', '', ', onDisconnect: drain')}
${model('one-slot', 'one-slot')}
  - { id: twofold, type: chat, context: 128000, pricing: { prompt: 1000, completion: 1000, free_requests: true }, routes: [{ upstream: short-timeout, model: a }, { upstream: short-timeout, model: b }] }
${model('claude', 'anthropic', ', reasoning: true')}
${model('gem', 'gemini', ', reasoning: true')}
`;
};

let stack: TestStack;

const addScript = useScriptedStack(test, catalogOf, (started) => {
  stack = started;
});

/** A promise with its `resolve` function. */
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

/** Creates an account, and the body of a chat to which the vendor responds with this script. */
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

/** Disconnects, and resolves once the worker has received the gateway's cancel message. */
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
  await Promise.all(Array.from(workers, waitForControl));
}

/**
 * Resolves once a worker has received all control messages that have been sent to it so far. A drain is one to which it
 * replies, and nothing waits in its `image` queue. `drainSlotWaiters` would give up after some seconds.
 */
async function waitForControl(workerId: string): Promise<void> {
  const reply = redisKeys.drained(randomUUID());
  await sendControl(stack.redis, workerId, { action: 'drain', queue: 'image', reply });
  await waitFor('the worker to have received all messages', async () => (await stack.redis.llen(reply)) > 0);
}

/**
 * Waits until the account's only request is settled, and returns its log row. Checks that the account lost its cost.
 */
async function waitForSettledRow(t: ExecutionContext, { account }: TestChat): Promise<RequestLogDocument> {
  await waitForNoReservation(stack, account.id);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const row = await waitFor('the log row', () => rows.findOne({ accountId: account.id }));
  t.is(await readAmountCharged(stack, account.id, '1000'), row.costNano);
  return row;
}

const disconnectedRow = { success: false, responseCode: 499, errorCode: 'job_cancelled' };
/** The cost at a thousand roubles per million prompt or completion tokens. */
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
  test(`if the caller disconnects after the last token, the usage chunk that follows is billed (${dialect} API)`, async (t) => {
    const disconnected = createDeferred();
    let aborted: Promise<void> | null = null;
    const chat = await prepareChat(model, async function* (_body, _path, call: ScriptedCall) {
      aborted = call.cut;
      yield* before;
      await disconnected.promise;
      yield* after;
      // The script does not end by itself: the gateway aborts the call as soon as the usage is known.
      await call.cut;
    });
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await caller.readUntil('last');
    await disconnectAndWait(t, chat, caller);
    disconnected.resolve();
    const row = await waitForSettledRow(t, chat);
    t.like(row, { ...disconnectedRow, promptTokens: 20, completionTokens: 10_000, counted: false });
    t.is(row.costNano, 10_020_000_000n);
    await aborted!;
  });
}

const geminiChunk = (parts: object[], counts: object): string =>
  JSON.stringify({
    candidates: parts.length === 0 ? [] : [{ index: 0, content: { role: 'model', parts } }],
    usageMetadata: { promptTokenCount: 20, ...counts },
  });

test('if the caller disconnects from a Gemini stream, the call is aborted immediately and billed from the usage in its last chunk', async (t) => {
  let aborted: Promise<void> | null = null;
  let lastSentAtMs = 0;
  const chat = await prepareChat('gem', async function* (_body, _path, call: ScriptedCall) {
    aborted = call.cut;
    yield geminiChunk([], { thoughtsTokenCount: 9_990 });
    lastSentAtMs = performance.now();
    yield geminiChunk([{ text: 'last' }], { thoughtsTokenCount: 9_990, candidatesTokenCount: 10 });
    await call.cut;
  });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('last');
  caller.leave();
  await aborted!;
  const waitedMs = performance.now() - lastSentAtMs;
  const row = await waitForSettledRow(t, chat);
  if (waitedMs > maxStepMs) {
    // In that time, as on a busy machine, the vendor may have generated more.
    t.like(row, { ...disconnectedRow, promptTokens: 20 });
    t.true(row.completionTokens >= 10_000);
    return;
  }
  t.like(row, { ...disconnectedRow, promptTokens: 20, completionTokens: 10_000, counted: false });
  t.is(row.costNano, 10_020_000_000n);
});

test('if the caller disconnects before the first output, it pays for the reasoning reported in the usage chunks so far', async (t) => {
  const reasoned = createDeferred();
  let aborted: Promise<void> | null = null;
  const chat = await prepareChat('plain', async function* (_body, _path, call: ScriptedCall) {
    aborted = call.cut;
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
  // The gateway aborts the call as soon as it knows that every chunk reports usage.
  await aborted!;
  const row = await waitForSettledRow(t, chat);
  t.like(row, { ...disconnectedRow, promptTokens: 20, completionTokens: 10_000, counted: false });
});

/** Sends these chunks and leaves the stream open until it is aborted. */
const sendAndWait = (chunks: readonly string[], onSent: () => void = () => undefined): Script =>
  async function* (_body, _path, call: ScriptedCall) {
    yield* chunks;
    onSent();
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
  test(`if the caller disconnects before the usage chunk, it pays for the unseen output that ${what} may have generated, by our own count`, async (t) => {
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

test('if the caller disconnects, the charge for possible unseen output never exceeds the reservation', async (t) => {
  const chat = await prepareChat('thinker', sendAndWait([chunk({ content: 'last' })]), { max_tokens: 50 });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('last');
  caller.leave();
  t.like(await waitForSettledRow(t, chat), { ...disconnectedRow, counted: true, completionTokens: 50 });
});

test('if the caller disconnects during a web search, it pays for the prompt and for what the search may have found', async (t) => {
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
  { what: 'a model whose web search was not requested', model: 'searcher', maxTokens: 100 },
]) {
  test(`if the caller disconnects at the last token of ${what}, it pays for at most ${maxTokens} prompt tokens`, async (t) => {
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

test('if the caller disconnects and the model has no hidden output, it pays for the output received before and after the disconnect', async (t) => {
  const disconnected = createDeferred();
  const chat = await prepareChat('plain-short-grace', async function* (_body, _path, call: ScriptedCall) {
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

test('if the caller disconnects before any output, it pays for the prompt or uses up a free request', async (t) => {
  const called = [createDeferred(), createDeferred()] as const;
  let calls = 0;
  const script = sendAndWait([], () => called[calls++]!.resolve());
  const chat = await prepareChat('plain-short-grace', script, { freeRequests: 1 });
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
  t.is(await readAmountCharged(stack, chat.account.id, '1000'), paidRow.costNano);
  t.is(paidRow.costNano, BigInt(paidRow.promptTokens) * 1_000_000n);
  t.true(paidRow.promptTokens > 5);
});

for (const model of ['plain-no-grace', 'thinker']) {
  test(`after a disconnect, the gateway reads a non-streamed response to its end and bills the reported usage: ${model}`, async (t) => {
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
    // Longer than the grace period for streams.
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
  test(`if a non-streamed response ${what} after a disconnect, the request is not charged and not retried`, async (t) => {
    const [called, disconnected] = [createDeferred(), createDeferred()];
    let calls = 0;
    const chat = await prepareChat(
      'twofold',
      async (_body, _path, call) => {
        calls += 1;
        called.resolve();
        await (what === 'breaks off' ? disconnected.promise : call.cut);
        throw new Error('simulated vendor failure');
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

test('after a disconnect, the gateway reads a stream on a draining route to its end and bills the reported usage', async (t) => {
  const disconnected = createDeferred();
  const chat = await prepareChat('drained', async function* () {
    yield chunk({ content: 'one' }, usage(20, 1));
    yield chunk({ content: 'two' }, usage(20, 2));
    await disconnected.promise;
    // A route that aborts after a disconnect would stop here: its grace period is over, and the usage is known.
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

test('if the vendor fails after a disconnect, the caller pays for the output received, or nothing if there was none', async (t) => {
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

test('if the caller disconnects while its request waits for a vendor slot, the request is not charged and not logged', async (t) => {
  const [called, finished] = [createDeferred(), createDeferred()];
  const blockingChat = await prepareChat(
    'one-slot',
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
  const chat = await prepareChat('one-slot', () => {
    wasCalled = true;
    return chatWithUsage({});
  });
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await waitFor('the reservation', async () => (await stack.readAccount(chat.account.id)).reservedNano > 0n);
  caller.leave();
  await waitForNoReservation(stack, chat.account.id);
  t.is(await readAmountCharged(stack, chat.account.id, '1000'), 0n);
  finished.resolve();
  await first.rest();
  t.false(wasCalled);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  await findRow(stack, first.requestId());
  t.is(await rows.countDocuments({ accountId: chat.account.id }), 0);
});
