import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { startChat } from '../support/leaving.ts';
import { readLoss, waitForNoReservation } from '../support/observe.ts';
import { useScriptedStack } from '../support/scripted-stack.ts';
import type { Script } from '../support/scripted-vendor.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What a vendor generates and nobody sees is paid for, however a call ends that the caller had asked for. */

const graceMs = 300;
const timeoutMs = 1_500;
/** Longer than a model takes between two words. */
const silenceMs = 800;

const catalogOf = (url: string): string => {
  const model = (id: string, upstream: string, more = '', route = ''): string =>
    `  - { id: ${id}, type: chat, context: 128000, pricing: { prompt: 1000, completion: 1000 }${more}, routes: [{ upstream: ${upstream}, model: ${id}${route} }] }`;
  return `
upstreams:
  short: { kind: openai, baseUrl: "${url}/v1", timeoutMs: ${timeoutMs}, disconnectGraceMs: 20000 }
  ollama: { kind: openai, baseUrl: "${url}/v1", drops: [n], disconnectGraceMs: ${graceMs} }
  anthropic: { kind: anthropic, baseUrl: "${url}", apiKeys: [sk-ant-0123456789], disconnectGraceMs: ${graceMs} }
  gemini: { kind: gemini, baseUrl: "${url}", apiKeys: [AIza-0123456789], disconnectGraceMs: ${graceMs} }
models:
${model('plain', 'short')}
${model('thinker', 'short', ', reasoning: true')}
${model('answers', 'short', ', reasoning: true, max_output_tokens: 20000', ', maxTokens: answer')}
${model('unbounded', 'short', ', reasoning: true, max_output_tokens: 20000', ', drops: [max_tokens, max_completion_tokens]')}
${model('single', 'ollama', ', reasoning: true')}
${model('claude', 'anthropic', ', web_search: true')}
${model('gem', 'gemini', ', reasoning: true')}
`;
};

let stack: TestStack;

const addScript = useScriptedStack(test, catalogOf, (started) => {
  stack = started;
});

interface Scene {
  readonly account: TestAccount;
  readonly body: object;
  /** How often the vendor was asked. */
  readonly calls: () => number;
}

async function setScene(model: string, script: Script, more: object = {}): Promise<Scene> {
  let calls = 0;
  const messages = addScript((...args) => {
    calls += 1;
    return script(...args);
  });
  const account = await stack.createAccount({ balance: '1000' });
  return {
    account,
    body: { model, stream: true, messages, max_tokens: 20_000, ...more },
    calls: () => calls,
  };
}

/** The row of the account's only request, once it is settled; its cost is what the account lost. */
async function settle(t: ExecutionContext, { account }: Scene): Promise<RequestLogDocument> {
  await waitForNoReservation(stack, account.id);
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  const row = await waitFor('the row', () => rows.findOne({ accountId: account.id }));
  t.is(await readLoss(stack, account.id, '1000'), row.costNano);
  return row;
}

const chunk = (delta: object): string =>
  JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] });

function isWithin(t: ExecutionContext, tokens: number, least: number, most: number): void {
  t.true(tokens >= least && tokens <= most, `${tokens} of ${least} to ${most}`);
}

const left = { success: false, errorCode: 'job_cancelled', counted: true };
const tooLong = { success: false, errorCode: 'upstream_timeout', counted: true };

test('a report does not hold what is thought in silence after it', async (t) => {
  const scene = await setScene('gem', async function* (_body, _path, call) {
    yield JSON.stringify({
      candidates: [
        { index: 0, content: { role: 'model', parts: [{ text: 'Let me think', thought: true }] } },
      ],
      usageMetadata: { promptTokenCount: 20, thoughtsTokenCount: 2_000 },
    });
    await call.cut;
  });
  const startedAtMs = performance.now();
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await caller.readUntil('Let me');
  await delay(silenceMs);
  caller.leave();
  const row = await settle(t, scene);
  const most = 2_000 + performance.now() - startedAtMs;
  t.like(row, { ...left, promptTokens: 20 });
  isWithin(t, row.completionTokens, 2_000 + silenceMs + graceMs - 50, most);
});

test('a vendor that is sent no n makes one answer, and one is reserved and paid for', async (t) => {
  let sent: object = {};
  const more = { n: 8, max_tokens: 10_000 };
  const scene = await setScene(
    'single',
    async function* (body, _path, call) {
      sent = body;
      yield chunk({ content: 'Hm' });
      await call.cut;
    },
    more,
  );
  const startedAtMs = performance.now();
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await caller.readUntil('Hm');
  await delay(silenceMs);
  caller.leave();
  const row = await settle(t, scene);
  t.false('n' in sent);
  t.like(sent, { max_tokens: 10_000 });
  t.like(row, left);
  isWithin(t, row.completionTokens, silenceMs + graceMs - 50, performance.now() - startedAtMs);
});

test('a second call of one answer is paid for beside the first, whose usage is known', async (t) => {
  let askAgain = (): void => undefined;
  const askedAgain = new Promise<void>((resolve) => {
    askAgain = resolve;
  });
  const scene = await setScene(
    'claude',
    async function* (_body, _path, call) {
      if (scene.calls() === 2) {
        askAgain();
        await call.cut;
        return;
      }
      const message = { role: 'assistant', content: [], usage: { input_tokens: 5_000, output_tokens: 1 } };
      yield JSON.stringify({ type: 'message_start', message });
      const delta = { stop_reason: 'pause_turn' };
      yield JSON.stringify({ type: 'message_delta', delta, usage: { output_tokens: 700 } });
      yield JSON.stringify({ type: 'message_stop' });
    },
    { web_search: true },
  );
  const caller = startChat(stack, scene.account.apiKey, scene.body);
  await askedAgain;
  caller.leave();
  const row = await settle(t, scene);
  t.like(row, left);
  t.is(scene.calls(), 2);
  // Each of the two calls reads the prompt and what a search may have found.
  isWithin(t, row.promptTokens, 32_000, 32_100);
  isWithin(t, row.completionTokens, 700 + graceMs - 50, 20_000);
});

for (const leaves of [false, true]) {
  const what = leaves ? 'is read on for its usage until' : 'lasts until';
  test(`a stream that ${what} our own time is over is charged as one that is left`, async (t) => {
    const scene = await setScene('thinker', async function* (_body, _path, call) {
      yield chunk({ role: 'assistant', content: '' });
      await delay(silenceMs);
      const cut = new AbortController();
      void call.cut.then(() => cut.abort());
      for (let i = 0; !cut.signal.aborted; i++) {
        yield chunk({ content: `${i} ` });
        await delay(20);
      }
    });
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await caller.readUntil('0 ');
    if (leaves) caller.leave();
    else t.regex(await caller.rest(), /upstream_timeout/);
    const row = await settle(t, scene);
    t.like(row, leaves ? left : tooLong);
    t.is(scene.calls(), 1);
    isWithin(t, row.completionTokens, silenceMs, 2 * timeoutMs);
  });
}

/** Begins, and then thinks, as a vendor might that keeps the connection alive, until it is cut. */
const think: Script = async function* (_body, _path, call) {
  yield chunk({ role: 'assistant', content: '' });
  await call.cut;
};

for (const [model, calls] of [
  ['answers', 1],
  ['unbounded', 1],
  ['thinker', 2],
] as const) {
  const what =
    calls === 1 ? 'bounds no thought: it is paid for, and' : 'bounds all: who takes all our time hangs, and';
  test(`max_tokens on the route of ${model} ${what} ${calls} calls are made`, async (t) => {
    let arrivedAtMs = 0;
    const script: Script = (...args) => {
      arrivedAtMs = performance.now();
      return think(...args);
    };
    const scene = await setScene(model, script, { max_tokens: 8 });
    const startedAtMs = performance.now();
    const caller = startChat(stack, scene.account.apiKey, scene.body);
    await t.notThrowsAsync(caller.rest());
    const row = await settle(t, scene);
    t.is(scene.calls(), calls);
    if (calls > 1) t.like(row, { success: false, costNano: 0n });
    else {
      t.like(row, tooLong);
      // The time of a call begins before it is connected, and what may be generated when it is sent.
      isWithin(t, row.completionTokens, timeoutMs - (arrivedAtMs - startedAtMs), 2 * timeoutMs);
    }
  });
}

/** Comes to nothing. */
const hang: Script = async (_body, _path, call) => {
  await call.cut;
  return {};
};

for (const [what, more] of [
  ['a whole answer', { stream: false }],
  ['a stream that does not begin', {}],
] as const) {
  test(`a vendor that takes all our time for ${what} hangs: it is asked again, and nothing is charged`, async (t) => {
    const scene = await setScene('thinker', hang, more);
    const answer = await stack.post('/v1/chat/completions', scene.account.apiKey, scene.body);
    t.is(answer.status, 504);
    const row = await settle(t, scene);
    t.like(row, { success: false, errorCode: 'upstream_timeout', costNano: 0n });
    t.is(scene.calls(), 2);
  });
}
