import test, { type ExecutionContext } from 'ava';
import { captureLog, type LogLine } from '../support/captured-log.ts';
import { createJob, waitForJob } from '../support/jobs.ts';
import {
  startScriptedVendor,
  chatWithUsage,
  ScriptedRefusal,
  type Script,
} from '../support/scripted-vendor.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';

/** The one line that is written for each request when it has ended. */

const catalogOf = (url: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: '${url}', disconnectGraceMs: 5000 }
models:
  - id: chat
    type: chat
    context: 8192
    pricing: { type: tokens, prompt: 100, completion: 200 }
    routes: [{ upstream: vendor, model: chat }]
  - { id: embed, type: embedding, context: 8192, dimensions: { default: 4 }, pricing: { in_cost_per_million: 100 }, routes: [{ upstream: vendor, model: embed }] }
  - { id: image, type: image, context: 9, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: image }] }
`;

const body = {
  model: 'chat',
  messages: [{ role: 'user', content: 'a secret of the caller' }],
  max_tokens: 10,
};
const usage = {
  prompt_tokens: 8,
  completion_tokens: 4,
  total_tokens: 12,
  prompt_tokens_details: { cached_tokens: 3 },
  completion_tokens_details: { reasoning_tokens: 1 },
};
const chunkOf = (content: string, finish: string | null = null): string =>
  JSON.stringify({
    id: 'chunk',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'chat',
    choices: [{ index: 0, delta: { content }, finish_reason: finish }],
  });

function createGate(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}

interface Setup {
  readonly stack: TestStack;
  readonly account: TestAccount;
  readonly lines: readonly LogLine[];
  readonly nextAccess: (path: string) => Promise<LogLine>;
  readonly waitForLine: (matches: (line: LogLine) => boolean) => Promise<LogLine>;
}

async function setUp(t: ExecutionContext, script: Script): Promise<Setup> {
  const vendor = await startScriptedVendor(script);
  t.teardown(() => vendor.close());
  const { log, lines, waitForLine } = captureLog();
  const stack = await useStack(t, { catalog: catalogOf(`${vendor.url}/v1`), log });
  const account = await stack.createAccount();
  const nextAccess = (path: string) =>
    waitForLine(({ msg, path: logged }) => msg === 'request' && logged === path);
  return { stack, account, lines, nextAccess, waitForLine };
}

test('the line of a chat says who asked which model, what it cost, and how long it waited for whom', async (t) => {
  const { stack, account, lines, nextAccess } = await setUp(t, () => chatWithUsage(usage));
  const response = await stack.post('/v1/chat/completions', account.apiKey, body);
  await response.text();
  const line = await nextAccess('/v1/chat/completions');
  t.like(line, {
    requestId: response.headers.get('x-request-id')!,
    method: 'POST',
    status: 200,
    outcome: 'success',
    accountId: account.id,
    model: 'chat',
    upstream: 'vendor',
    attempts: 1,
    promptTokens: 8,
    cachedTokens: 3,
    completionTokens: 4,
    reasoningTokens: 1,
    // (8 × 100 + 4 × 200) roubles per million.
    cost: 0.0016,
  });
  for (const name of ['durationMs', 'queueWaitMs', 'upstreamMs'])
    t.true(Number(line[name]) >= 0 && Number(line[name]) <= Number(line['durationMs']), name);
  const text = JSON.stringify(lines);
  t.false(text.includes('a secret of the caller') || text.includes(account.apiKey));
});

test('a stream that breaks is not logged as a success', async (t) => {
  const { promise: mayCrash, resolve: crash } = createGate();
  const { stack, account, nextAccess } = await setUp(t, async function* () {
    yield chunkOf('Hello there');
    await mayCrash;
    throw new Error('the vendor crashes');
  });
  const response = await stack.post('/v1/chat/completions', account.apiKey, { ...body, stream: true });
  t.is(response.status, 200);
  crash();
  t.regex(await response.text(), /upstream_error/);
  const line = await nextAccess('/v1/chat/completions');
  t.like(line, { outcome: 'failed', sentStatus: 200, code: 'upstream_error', model: 'chat', attempts: 1 });
  t.true(Number(line['status']) >= 500);
  t.true(Number(line['firstTokenMs']) >= 0);
  const metrics = await (await fetch(`${stack.url}/metrics`)).text();
  t.regex(
    metrics,
    /model_gateway_requests_total\{operation="createChatCompletion",model="chat",outcome="failed",code="upstream_error"\} 1/,
  );
});

test('the line of a caller who left says what was charged, once its worker has settled the request', async (t) => {
  const { promise: mayFinish, resolve: finish } = createGate();
  const { stack, account, nextAccess } = await setUp(t, async function* () {
    yield chunkOf('Hello');
    await mayFinish;
    yield chunkOf('', 'stop');
    yield JSON.stringify({ id: 'chunk', object: 'chat.completion.chunk', choices: [], usage });
    yield '[DONE]';
  });
  const leaving = new AbortController();
  const response = await fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
    signal: leaving.signal,
  });
  await response.body!.getReader().read();
  leaving.abort();
  finish();
  const line = await nextAccess('/v1/chat/completions');
  t.like(line, { status: 499, outcome: 'disconnected', completionTokens: 4, upstream: 'vendor' });
  t.true(Number(line['cost']) > 0);
});

test('a replay names the request whose response it is, and its tokens and cost are not logged again', async (t) => {
  const { stack, account, nextAccess, waitForLine } = await setUp(t, () => chatWithUsage(usage));
  const headers = { 'idempotency-key': 'once' };
  await (await stack.post('/v1/chat/completions', account.apiKey, body, headers)).text();
  const first = await nextAccess('/v1/chat/completions');
  t.like(first, { promptTokens: 8, replayOf: undefined, address: '127.0.0.1' });
  const replay = await stack.post('/v1/chat/completions', account.apiKey, body, headers);
  t.is(replay.headers.get('idempotent-replayed'), 'true');
  await replay.text();
  const line = await waitForLine(({ replayOf }) => replayOf !== undefined);
  t.is(line['replayOf'], first['requestId']);
  t.is(first['requestId'], replay.headers.get('x-request-id'));
  t.like(line, { status: 200, outcome: 'success', model: 'chat' });
  t.deepEqual([line['cost'], line['promptTokens']], [undefined, undefined]);
});

test('a durable job has a line when it has ended, with what its request cost', async (t) => {
  const { stack, account, waitForLine } = await setUp(t, () => chatWithUsage(usage));
  const { id } = await createJob(stack, account, '/v1/chat/completions', body);
  const { cost_request: cost } = await waitForJob(stack, account, id);
  const line = await waitForLine(({ msg }) => msg === 'job ended');
  t.like(line, {
    requestId: id,
    accountId: account.id,
    model: 'chat',
    promptTokens: 8,
    cost: cost!,
    attempt: 1,
  });
});

test('the line counts each call to a vendor that failed before', async (t) => {
  let calls = 0;
  const { stack, account, nextAccess } = await setUp(t, () => {
    calls += 1;
    return calls === 1 ? new ScriptedRefusal(500, { error: { message: 'down' } }) : chatWithUsage(usage);
  });
  t.is((await stack.post('/v1/chat/completions', account.apiKey, body)).status, 200);
  t.like(await nextAccess('/v1/chat/completions'), { attempts: 2, status: 200 });
});

test('the line of a request that failed says why, at level warn; callers do not see it', async (t) => {
  const refusal = { error: { message: 'no such key', code: 'invalid_api_key' } };
  const { stack, account, lines, waitForLine } = await setUp(t, () => new ScriptedRefusal(401, refusal));
  const fail = async (): Promise<LogLine> => {
    const response = await stack.post('/v1/chat/completions', account.apiKey, body);
    t.is(response.status, 502);
    t.notRegex(await response.text(), /vendor|cooldown|invalid_api_key|no such key/);
    const id = response.headers.get('x-request-id');
    return await waitForLine(({ msg, requestId }) => msg === 'request' && requestId === id);
  };
  t.like(await fail(), { level: 40, outcome: 'failed', code: 'upstream_error', upstream: 'vendor' });
  // The second one calls no vendor.
  const { upstream, reason } = await fail();
  t.is(upstream, undefined);
  t.regex(String(reason), /^vendor is on cooldown.*: refused with 401 \(invalid_api_key\)$/);
  t.false(lines.some(({ msg }) => msg === 'request failed'));
});

test('requests of every kind say why they failed', async (t) => {
  const refusal = { error: { message: 'out of order' } };
  const { stack, account, nextAccess } = await setUp(t, () => new ScriptedRefusal(404, refusal));
  for (const [path, request] of [
    ['/v1/embeddings', { model: 'embed', input: 'hello' }],
    ['/v1/images/generations', { model: 'image', prompt: 'a cat' }],
  ] as const) {
    t.is((await stack.post(path, account.apiKey, request)).status, 502, path);
    t.like(await nextAccess(path), { outcome: 'failed', upstream: 'vendor', reason: 'out of order' });
  }
});

test('a durable job that failed says why in its line', async (t) => {
  const refusal = { error: { message: 'out of order' } };
  const { stack, account, waitForLine } = await setUp(t, () => new ScriptedRefusal(404, refusal));
  const { id } = await createJob(stack, account, '/v1/chat/completions', body);
  t.is((await waitForJob(stack, account, id)).status, 'failed');
  const line = await waitForLine(({ msg }) => msg === 'job ended');
  t.like(line, { requestId: id, code: 'upstream_error', reason: 'out of order' });
});

test('successful probes and scrapes are logged at debug level, because they come every few seconds', async (t) => {
  const { log, lines, waitForLine } = captureLog('debug');
  const stack = await useStack(t, { workers: [], log });
  for (const path of ['/livez', '/readyz', '/metrics', '/v1/admin/demand']) {
    t.is((await fetch(`${stack.url}${path}`)).status, 200);
    const line = await waitForLine(({ msg, path: logged }) => msg === 'request' && logged === path);
    t.is(line['level'], 20, path);
  }
  t.is((await fetch(`${stack.url}/metrics`, { headers: { via: '1.1 proxy' } })).status, 403);
  await waitForLine(({ level, status }) => level === 30 && status === 403);
  t.true(lines.length > 0);
});
