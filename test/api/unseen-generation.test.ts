import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { startChat } from '../support/disconnecting-caller.ts';
import { readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { useScriptedStack } from '../support/scripted-stack.ts';
import type { Script } from '../support/scripted-vendor.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Callers pay for requested output that a vendor generates without streaming it, whether the call ends with a response,
 * a disconnect or a timeout.
 */

const graceMs = 300;
const timeoutMs = 3_000;
/** Longer than a model pauses between two tokens. */
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

interface TestChat {
  readonly account: TestAccount;
  readonly body: object;
  /** The number of vendor calls. */
  readonly calls: () => number;
}

async function prepareChat(model: string, script: Script, more: object = {}): Promise<TestChat> {
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

const chunk = (delta: object): string =>
  JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] });

function assertWithin(t: ExecutionContext, tokens: number, min: number, max: number): void {
  t.true(tokens >= min && tokens <= max, `${tokens} is not between ${min} and ${max}`);
}

const disconnectedRow = { success: false, errorCode: 'job_cancelled', counted: true };
const timedOutRow = { success: false, errorCode: 'upstream_timeout', counted: true };

test('reasoning that the vendor generates after its last usage report without streaming it is charged as well', async (t) => {
  const chat = await prepareChat('gem', async function* (_body, _path, call) {
    yield JSON.stringify({
      candidates: [
        { index: 0, content: { role: 'model', parts: [{ text: 'Let me think', thought: true }] } },
      ],
      usageMetadata: { promptTokenCount: 20, thoughtsTokenCount: 2_000 },
    });
    await call.cut;
  });
  const startedAtMs = performance.now();
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('Let me');
  await delay(silenceMs);
  caller.leave();
  const row = await waitForSettledRow(t, chat);
  const maxTokens = 2_000 + performance.now() - startedAtMs;
  t.like(row, { ...disconnectedRow, promptTokens: 20 });
  assertWithin(t, row.completionTokens, 2_000 + silenceMs + graceMs - 50, maxTokens);
});

test('if n is not sent to the vendor, only one choice is reserved and charged', async (t) => {
  let sent: object = {};
  const more = { n: 8, max_tokens: 10_000 };
  const chat = await prepareChat(
    'single',
    async function* (body, _path, call) {
      sent = body;
      yield chunk({ content: 'Hm' });
      await call.cut;
    },
    more,
  );
  const startedAtMs = performance.now();
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await caller.readUntil('Hm');
  await delay(silenceMs);
  caller.leave();
  const row = await waitForSettledRow(t, chat);
  t.false('n' in sent);
  t.like(sent, { max_tokens: 10_000 });
  t.like(row, disconnectedRow);
  assertWithin(t, row.completionTokens, silenceMs + graceMs - 50, performance.now() - startedAtMs);
});

test('if a response takes two vendor calls, the second is billed in addition to the reported usage of the first', async (t) => {
  let signalSecondCall = (): void => undefined;
  const secondCall = new Promise<void>((resolve) => {
    signalSecondCall = resolve;
  });
  const chat = await prepareChat(
    'claude',
    async function* (_body, _path, call) {
      if (chat.calls() === 2) {
        signalSecondCall();
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
  const caller = startChat(stack, chat.account.apiKey, chat.body);
  await secondCall;
  caller.leave();
  const row = await waitForSettledRow(t, chat);
  t.like(row, disconnectedRow);
  t.is(chat.calls(), 2);
  // Each of the two calls reads the prompt and what a search may have found.
  assertWithin(t, row.promptTokens, 32_000, 32_100);
  assertWithin(t, row.completionTokens, 700 + graceMs - 50, 20_000);
});

for (const isDisconnected of [false, true]) {
  const state = isDisconnected ? 'is read only for its usage after a disconnect' : 'is still running';
  test(`if our timeout expires while a stream ${state}, it is billed as if the caller had disconnected`, async (t) => {
    const chat = await prepareChat('thinker', async function* (_body, _path, call) {
      yield chunk({ role: 'assistant', content: '' });
      await delay(silenceMs);
      const aborted = new AbortController();
      void call.cut.then(() => aborted.abort());
      for (let i = 0; !aborted.signal.aborted; i++) {
        yield chunk({ content: `${i} ` });
        await delay(20);
      }
    });
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await caller.readUntil('0 ');
    if (isDisconnected) caller.leave();
    else t.regex(await caller.rest(), /upstream_timeout/);
    const row = await waitForSettledRow(t, chat);
    t.like(row, isDisconnected ? disconnectedRow : timedOutRow);
    t.is(chat.calls(), 1);
    assertWithin(t, row.completionTokens, silenceMs, 2 * timeoutMs);
  });
}

/** Starts a stream and then reasons until it is aborted, like a vendor that keeps the connection alive. */
const reasonUntilAborted: Script = async function* (_body, _path, call) {
  yield chunk({ role: 'assistant', content: '' });
  await call.cut;
};

for (const [model, calls] of [
  ['answers', 1],
  ['unbounded', 1],
  ['thinker', 2],
] as const) {
  const effect =
    calls === 1
      ? 'does not limit reasoning, so the caller pays for a call that times out'
      : 'also limits reasoning, so a call that times out is retried and not charged';
  test(`max_tokens on the route of ${model} ${effect} (calls: ${calls})`, async (t) => {
    let arrivedAtMs = 0;
    const script: Script = (...args) => {
      arrivedAtMs = performance.now();
      return reasonUntilAborted(...args);
    };
    const chat = await prepareChat(model, script, { max_tokens: 8 });
    const startedAtMs = performance.now();
    const caller = startChat(stack, chat.account.apiKey, chat.body);
    await t.notThrowsAsync(caller.rest());
    const row = await waitForSettledRow(t, chat);
    t.is(chat.calls(), calls);
    if (calls > 1) t.like(row, { success: false, costNano: 0n });
    else {
      t.like(row, timedOutRow);
      // The timeout starts before the connection is open, but generation is charged only from when the request is sent.
      assertWithin(t, row.completionTokens, timeoutMs - (arrivedAtMs - startedAtMs), 2 * timeoutMs);
    }
  });
}

/** Never responds. */
const hang: Script = async (_body, _path, call) => {
  await call.cut;
  return {};
};

for (const [what, more] of [
  ['a non-streamed response', { stream: false }],
  ['a stream that does not start', {}],
] as const) {
  test(`if the vendor hangs until our timeout instead of sending ${what}, the request is retried and not charged`, async (t) => {
    const chat = await prepareChat('thinker', hang, more);
    const response = await stack.post('/v1/chat/completions', chat.account.apiKey, chat.body);
    t.is(response.status, 504);
    const row = await waitForSettledRow(t, chat);
    t.like(row, { success: false, errorCode: 'upstream_timeout', costNano: 0n });
    t.is(chat.calls(), 2);
  });
}
