import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { redisChannels } from '../../shared/redis/redis-keys.ts';
import { startChat, type LeavingCaller } from '../support/leaving.ts';
import { findReservations, findRow, readLoss, waitForNoReservation } from '../support/observe.ts';
import { useScriptedStack } from '../support/scripted-stack.ts';
import { answerWithUsage, type Script, type ScriptedCall } from '../support/scripted-vendor.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { listenTo } from '../support/listen-to.ts';
import { WorkerRegistryStore } from '../../shared/queue/worker-registry-store.ts';

/** Callers who leave pay for what the vendor did, whenever they leave, and for no more than was reserved. */

/** What a test's vendor says, by the name that the prompt tells. */
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

/** What one side waits for and the other lets happen. */
interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

function createGate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

const chunk = (delta: object, more: object = {}): string =>
  JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }], ...more });
const finish = JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
const usage = (prompt: number, completion: number): object => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion },
});

interface Scene {
  readonly account: TestAccount;
  readonly body: object;
}

/** An account, and the body of a chat of its own script. */
async function setScene(
  model: string,
  script: Script,
  {
    stream = true,
    freeRequests = 0,
    ...more
  }: { stream?: boolean; freeRequests?: number; max_tokens?: number } = {},
): Promise<Scene> {
  const messages = addScript(script);
  const account = await stack.createAccount({ balance: '1000', freeRequests });
  return { account, body: { model, stream, messages, max_tokens: 20_000, ...more } };
}

/** Leaves, and resolves when the worker has been told. */
async function leave(t: ExecutionContext, { account }: Scene, caller: LeavingCaller): Promise<void> {
  const [requestId] = await findReservations(stack, account.id);
  const workers = await new WorkerRegistryStore(stack.redis).findAlive('chat');
  const ears = await listenTo(t, stack.config.redisUrl, ...Array.from(workers, redisChannels.control));
  caller.leave();
  for (;;) {
    const told = JSON.parse((await ears.receive()).toString()) as { action?: string; requestId?: string };
    if (told.action === 'cancel' && told.requestId === requestId) break;
  }
  ears.close();
}

/** The row of the account's only request, once it is settled; its cost is what the account lost. */
async function settle(t: ExecutionContext, { account }: Scene): Promise<RequestLogDocument> {
  await waitForNoReservation(stack, account.id);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const row = await waitFor('the row', () => rows.findOne({ accountId: account.id }));
  t.is(await readLoss(stack, account.id, '1000'), row.costNano);
  return row;
}

const left = { success: false, responseCode: 499, errorCode: 'job_cancelled' };
/** At a thousand roubles a million tokens each. */
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
  test(`a stream of ${dialect} that is cut after its last word is charged by the usage that follows it`, async (t) => {
    const gone = createGate();
    let cut: Promise<void> | null = null;
    const scene = await setScene(model, async function* (_body, _path, call: ScriptedCall) {
      cut = call.cut;
      yield* before;
      await gone.opened;
      yield* after;
      // It ends nothing by itself: what ends the call early is that the usage is known.
      await call.cut;
    });
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await caller.readUntil('last');
    caller.leave();
    gone.open();
    const row = await settle(t, scene);
    t.like(row, { ...left, promptTokens: 20, completionTokens: 10_000, counted: false });
    t.is(row.costNano, 10_020_000_000n);
    await cut!;
  });
}

const geminiChunk = (parts: object[], counts: object): string =>
  JSON.stringify({
    candidates: parts.length === 0 ? [] : [{ index: 0, content: { role: 'model', parts } }],
    usageMetadata: { promptTokenCount: 20, ...counts },
  });

test('a stream of Gemini’s that is cut is charged by the counts of its last chunk, at once', async (t) => {
  let cut: Promise<void> | null = null;
  const scene = await setScene('gem', async function* (_body, _path, call: ScriptedCall) {
    cut = call.cut;
    yield geminiChunk([], { thoughtsTokenCount: 9_990 });
    yield geminiChunk([{ text: 'last' }], { thoughtsTokenCount: 9_990, candidatesTokenCount: 10 });
    await call.cut;
  });
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await caller.readUntil('last');
  caller.leave();
  await cut!;
  const row = await settle(t, scene);
  t.like(row, { ...left, promptTokens: 20, completionTokens: 10_000, counted: false });
  t.is(row.costNano, 10_020_000_000n);
});

test('a caller who leaves before the first word pays for what was thought, as usage on every chunk tells', async (t) => {
  const thought = createGate();
  let cut: Promise<void> | null = null;
  const scene = await setScene('plain', async function* (_body, _path, call: ScriptedCall) {
    cut = call.cut;
    yield chunk({ role: 'assistant', content: '' }, usage(20, 0));
    for (let tokens = 1_000; tokens <= 10_000; tokens += 1_000) {
      yield JSON.stringify({ choices: [], ...usage(20, tokens) });
    }
    thought.open();
    await call.cut;
  });
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await thought.opened;
  caller.leave();
  // The vendor is left as soon as all of it is known to be counted.
  await cut!;
  const row = await settle(t, scene);
  t.like(row, { ...left, promptTokens: 20, completionTokens: 10_000, counted: false });
});

/** A stream that says this and then nothing more, until it is cut. */
const sayAndWait = (said: readonly string[], onSaid: () => void = () => undefined): Script =>
  async function* (_body, _path, call: ScriptedCall) {
    yield* said;
    onSaid();
    await call.cut;
  };

for (const { what, model, said, least } of [
  { what: 'a model that reasons', model: 'thinker', said: chunk({ content: 'last' }), least: graceMs },
  {
    what: 'a model that draws',
    model: 'painter',
    said: chunk({
      content: 'last',
      images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }],
    }),
    least: 1_290 + graceMs,
  },
]) {
  test(`${what}, left without its usage, is charged what it can have generated meanwhile, as our count`, async (t) => {
    const startedAtMs = performance.now();
    const scene = await setScene(model, sayAndWait([said]));
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await caller.readUntil('last');
    caller.leave();
    const row = await settle(t, scene);
    const most = 1_290 + 10 + performance.now() - startedAtMs;
    t.like(row, { ...left, counted: true });
    t.true(row.completionTokens >= least && row.completionTokens <= most, `${row.completionTokens}`);
    t.is(row.costNano, costOf(row));
  });
}

test('what can have been generated unseen is never more than was reserved', async (t) => {
  const scene = await setScene('thinker', sayAndWait([chunk({ content: 'last' })]), { max_tokens: 50 });
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await caller.readUntil('last');
  caller.leave();
  t.like(await settle(t, scene), { ...left, counted: true, completionTokens: 50 });
});

test('a search that is left is charged the prompt with what it may have found', async (t) => {
  const asked = createGate();
  const scene = await setScene(
    'searcher',
    sayAndWait([], () => asked.open()),
  );
  const caller = startChat(stack, scene.account.apiKey, { ...scene.body, web_search: true });
  await asked.opened;
  caller.leave();
  const row = await settle(t, scene);
  t.like(row, { ...left, counted: true });
  t.true(row.promptTokens > 16_000 && row.promptTokens < 16_100, `${row.promptTokens}`);
});

for (const { what, model, most } of [
  { what: 'a model that searches unasked', model: 'sonar', most: 16_100 },
  { what: 'a model that could have searched, and was not asked to', model: 'searcher', most: 100 },
]) {
  test(`${what}, left after its last word, is charged a prompt of at most ${most} tokens`, async (t) => {
    const scene = await setScene(model, sayAndWait([chunk({ content: 'last' })]), { max_tokens: 16 });
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await caller.readUntil('last');
    caller.leave();
    const row = await settle(t, scene);
    t.like(row, { ...left, counted: true });
    t.true(row.promptTokens > most - 100 && row.promptTokens <= most, `${row.promptTokens}`);
    t.is(row.costNano, costOf(row));
  });
}

test('a model that hides nothing is charged what it was seen to say, also after its caller left', async (t) => {
  const gone = createGate();
  const scene = await setScene('plain-brief', async function* (_body, _path, call: ScriptedCall) {
    yield chunk({ content: 'one' });
    await gone.opened;
    yield chunk({ content: ' two' });
    await call.cut;
  });
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await caller.readUntil('one');
  caller.leave();
  gone.open();
  t.like(await settle(t, scene), { ...left, counted: true, completionTokens: 2 });
});

test('a stream that is left before anything came of it is charged its prompt, and uses up a free request', async (t) => {
  const asked = [createGate(), createGate()] as const;
  let calls = 0;
  const script = sayAndWait([], () => asked[calls++]!.open());
  const scene = await setScene('plain-brief', script, { freeRequests: 1 });
  for (const gate of asked) {
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await gate.opened;
    caller.leave();
    await waitForNoReservation(stack, scene.account.id);
  }
  t.is((await stack.readAccount(scene.account.id)).freeRequests, 0);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const paid = await waitFor('the row', () => rows.findOne({ accountId: scene.account.id, free: false }));
  t.like(paid, { ...left, counted: true, completionTokens: 0 });
  t.is(await readLoss(stack, scene.account.id, '1000'), paid.costNano);
  t.is(paid.costNano, BigInt(paid.promptTokens) * 1_000_000n);
  t.true(paid.promptTokens > 5);
});

for (const model of ['plain-hasty', 'thinker']) {
  test(`a whole answer is read to its end when its caller has left, and charged as reported: ${model}`, async (t) => {
    const [asked, gone] = [createGate(), createGate()];
    const scene = await setScene(
      model,
      async () => {
        asked.open();
        await gone.opened;
        return answerWithUsage({ prompt_tokens: 20, completion_tokens: 10_000 });
      },
      { stream: false },
    );
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await asked.opened;
    await leave(t, scene, caller);
    // Longer than a stream would be read on for.
    await delay(2 * graceMs);
    gone.open();
    t.like(await settle(t, scene), { ...left, promptTokens: 20, completionTokens: 10_000, counted: false });
  });
}

for (const what of ['never comes', 'breaks off'] as const) {
  test(`a whole answer that ${what} costs nothing, whoever waits for it, and is not asked for anew when nobody does`, async (t) => {
    const [asked, gone] = [createGate(), createGate()];
    let calls = 0;
    const scene = await setScene(
      'twofold',
      async (_body, _path, call) => {
        calls += 1;
        asked.open();
        await (what === 'breaks off' ? gone.opened : call.cut);
        throw new Error('the vendor fails');
      },
      { stream: false, freeRequests: 1 },
    );
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await asked.opened;
    await leave(t, scene, caller);
    gone.open();
    t.like(await settle(t, scene), { ...left, costNano: 0n });
    t.is((await stack.readAccount(scene.account.id)).freeRequests, 1);
    t.is(calls, 1);
  });
}

test('a route that drains is read to its end, and charged as reported', async (t) => {
  const gone = createGate();
  const scene = await setScene('drained', async function* () {
    yield chunk({ content: 'one' }, usage(20, 1));
    yield chunk({ content: 'two' }, usage(20, 2));
    await gone.opened;
    // Longer than a route that cancels would be read on for, and with usage that would be enough for it.
    for (let i = 0; i < 5; i++) yield chunk({ content: 'more' }, usage(20, 100 * (i + 1)));
    yield finish;
    yield JSON.stringify({ choices: [], ...usage(20, 10_000) });
    yield '[DONE]';
  });
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await caller.readUntil('two');
  await leave(t, scene, caller);
  gone.open();
  t.like(await settle(t, scene), { ...left, promptTokens: 20, completionTokens: 10_000, counted: false });
});

test('a vendor that fails after its caller left is paid for what was seen, before any output for nothing', async (t) => {
  for (const said of [[], [chunk({ content: 'last' })]]) {
    const [asked, gone] = [createGate(), createGate()];
    const scene = await setScene('thinker', async function* () {
      yield* said;
      asked.open();
      await gone.opened;
      yield JSON.stringify({ error: { message: 'overloaded', type: 'server_error', code: null } });
    });
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await asked.opened;
    if (said.length > 0) await caller.readUntil('last');
    await leave(t, scene, caller);
    gone.open();
    const row = await settle(t, scene);
    t.like(row, { ...left, counted: true, completionTokens: said.length });
    t.is(row.costNano, said.length === 0 ? 0n : costOf(row));
  }
});

test('a caller who leaves while others have the vendor’s calls pays nothing and leaves no row', async (t) => {
  const [asked, done] = [createGate(), createGate()];
  const busy = await setScene(
    'narrow',
    async () => {
      asked.open();
      await done.opened;
      return answerWithUsage({ prompt_tokens: 20, completion_tokens: 1 });
    },
    { stream: false },
  );
  const first = startChat(stack, busy.account.apiKey, busy.body);
  await asked.opened;
  let wasAsked = false;
  const scene = await setScene('narrow', () => {
    wasAsked = true;
    return answerWithUsage({});
  });
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await waitFor('the reservation', async () => (await stack.readAccount(scene.account.id)).reservedNano > 0n);
  caller.leave();
  await waitForNoReservation(stack, scene.account.id);
  t.is(await readLoss(stack, scene.account.id, '1000'), 0n);
  done.open();
  await first.rest();
  t.false(wasAsked);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  await findRow(stack, first.requestId());
  t.is(await rows.countDocuments({ accountId: scene.account.id }), 0);
});
