import test, { type ExecutionContext } from 'ava';
import { defaultNoWorkerTimeoutMs } from '../../api/requests/replies/worker-absence.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { bullQueues } from '../../shared/work/queue/job-kinds.ts';
import { openBullQueue } from '../../shared/work/queue/open-bull-queue.ts';
import { WorkerRegistryStore } from '../../shared/work/queue/worker-registry-store.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { startChat } from '../support/disconnecting-caller.ts';
import { findRow } from '../support/observe.ts';
import { startScriptedVendor } from '../support/scripted-vendor.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

interface Setup {
  readonly stack: TestStack;
  readonly vendor: VendorSimulator;
}

/** A stack without workers, and a vendor whose models are slow enough to kill a worker during a call. */
async function setUp(t: ExecutionContext): Promise<Setup> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    catalog: vendorCatalog(vendor.url),
    workers: [],
    api: { noWorkerTimeoutMs: defaultNoWorkerTimeoutMs },
  });
  return { stack, vendor };
}

async function countReservations(stack: TestStack, accountId: string): Promise<number> {
  return await stack.redis.hlen(redisKeys.reservations(shardOf(accountId)));
}

async function checkChargedOnce(
  t: ExecutionContext,
  stack: TestStack,
  accountId: string,
  cost: number,
): Promise<void> {
  t.true(cost > 0);
  const { balanceNano } = await stack.readAccount(accountId);
  t.is(Number(100_000_000_000n - balanceNano) / 1e9, cost);
  t.is(await countReservations(stack, accountId), 0);
}

const messages = [{ role: 'user', content: 'one two three' }];

test('if the worker of a chat is killed before any output, the chat runs again on another worker and is charged once', async (t) => {
  const { stack, vendor } = await setUp(t);
  const account = await stack.createAccount();
  const first = await startRole(t, 'worker', stack.env);
  const held = vendor.hold('gpt+slow-4000');
  const pending = stack.post('/v1/chat/completions', account.apiKey, { model: 'slow-chat', messages });
  await vendor.requests.waitFor(() => true);
  await startRole(t, 'worker', stack.env);
  await first.kill();
  held.end();
  const response = await pending;
  t.is(response.status, 200);
  const { usage } = (await response.json()) as { usage: { cost_request: number } };
  await checkChargedOnce(t, stack, account.id, usage.cost_request);
});

for (const { kind, path, body, model } of [
  {
    kind: 'image',
    path: '/v1/images/generations',
    body: { model: 'slow-image', prompt: 'a red fox' },
    model: 'img+slow-4000',
  },
  {
    kind: 'embedding',
    path: '/v1/embeddings',
    body: { model: 'slow-embedding', input: 'one two' },
    model: 'emb+slow-4000',
  },
]) {
  test(`if the worker of an ${kind} job is killed, the job runs again on another worker and is charged once`, async (t) => {
    const { stack, vendor } = await setUp(t);
    const account = await stack.createAccount();
    const first = await startRole(t, 'worker', stack.env);
    const held = vendor.hold(model);
    const pending = stack.post(path, account.apiKey, body);
    await vendor.requests.waitFor(() => true);
    await startRole(t, 'worker', stack.env);
    await first.kill();
    held.end();
    const response = await pending;
    t.is(response.status, 200);
    const { usage } = (await response.json()) as { usage: { cost_request: number } };
    await checkChargedOnce(t, stack, account.id, usage.cost_request);
  });
}

test('if the worker of a stream is killed midway, the stream ends with an error and its output is charged once', async (t) => {
  const { stack } = await setUp(t);
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const content = Array.from({ length: 500 }, (_, i) => `word${i}`).join(' ');
  const response = await stack.post('/v1/chat/completions', account.apiKey, {
    model: 'drip-chat',
    stream: true,
    messages: [{ role: 'user', content }],
  });
  let text = '';
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString();
    if (text.includes('"content"') && worker.child.exitCode === null && worker.child.signalCode === null)
      await worker.kill();
  }
  const events = text.trim().split('\n\n');
  const last = events.at(-1)!;
  t.false(
    text.includes('[DONE]'),
    `${events.length} events, ${worker.child.signalCode}: ${events.slice(-3).join(' ')}`,
  );
  t.regex(
    last,
    /^data: \{"error":\{"message":".+","type":"api_error","param":null,"code":"upstream_error"\}/,
  );
  const chargedNano = await waitFor('the settlement', async () => {
    const { balanceNano, reservedNano } = await stack.readAccount(account.id);
    return reservedNano === 0n && 100_000_000_000n - balanceNano;
  });
  t.true(chargedNano > 0n);
  t.is(await countReservations(stack, account.id), 0);
});

test('if the worker of a stream is killed, the charge includes usage that the vendor had reported beyond the visible output', async (t) => {
  const chunk = (delta: object, completion: number): string =>
    JSON.stringify({
      choices: [{ index: 0, delta, finish_reason: null }],
      usage: { prompt_tokens: 20, completion_tokens: completion },
    });
  const scripted = await startScriptedVendor(async function* (_body, _path, { cut }) {
    yield chunk({ content: 'seen' }, 1);
    // Hidden reasoning.
    yield chunk({}, 4_000);
    yield chunk({ content: 'last' }, 4_001);
    await cut;
  });
  t.teardown(() => scripted.close());
  const stack = await useStack(t, { catalog: vendorCatalog(scripted.url), workers: [] });
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const caller = startChat(stack, account.apiKey, { model: 'chat', stream: true });
  await caller.readUntil('last');
  await worker.kill();
  t.regex(await caller.rest(), /upstream_error/);
  // The row only appears in MongoDB once a worker reads the ledger.
  await stack.startWorker();
  t.like(await findRow(stack, caller.requestId()), { completionTokens: 4_001, counted: true });
});

test('if no worker runs, every caller gets a 503, nothing is charged and nothing hangs', async (t) => {
  const { stack, vendor } = await setUp(t);
  const account = await stack.createAccount();
  const responses = await Promise.all([
    stack.post('/v1/chat/completions', account.apiKey, { model: 'chat', messages }),
    stack.post('/v1/images/generations', account.apiKey, { model: 'slow-image', prompt: 'a red fox' }),
    stack.post('/v1/embeddings', account.apiKey, { model: 'slow-embedding', input: 'one' }),
  ]);
  for (const response of responses) {
    t.is(response.status, 503);
    t.truthy(response.headers.get('retry-after'));
    const { error } = (await response.json()) as { error: { code: string } };
    t.is(error.code, 'service_unavailable');
  }
  await waitFor(
    'the reservations to be released',
    async () => (await countReservations(stack, account.id)) === 0,
  );
  t.is((await stack.readAccount(account.id)).balanceNano, 100_000_000_000n);
  // A new worker removes the requests from their queues without calling a vendor.
  await stack.startWorker();
  const queues = Object.values(bullQueues)
    .flat()
    .map((name) => openBullQueue(name, stack.redis));
  t.teardown(() => Promise.all(queues.map((queue) => queue.close())));
  await waitFor('the queues to be empty', async () => {
    const counts = await Promise.all(
      queues.map((queue) => queue.getJobCountByTypes('waiting', 'prioritized', 'active')),
    );
    return counts.every((count) => count === 0);
  });
  t.is(vendor.requests.entries.length, 0);
});

test('a worker asked to stop finishes its work in flight and exits with 0', async (t) => {
  const { stack, vendor } = await setUp(t);
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const pending = stack.post('/v1/chat/completions', account.apiKey, { model: 'slow-chat', messages });
  await vendor.requests.waitFor(() => true);
  const exitCode = worker.terminate();
  t.is((await pending).status, 200);
  t.is(await exitCode, 0);
});

test('when the shutdown grace period ends, a worker releases its slots and its requests run again immediately on another worker', async (t) => {
  t.timeout(90_000);
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    catalog: `
upstreams: { narrow: { kind: openai, baseUrl: "${vendor.url}/v1", maxConcurrency: 2 } }
models: [{ id: chat, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: narrow, model: narrow-chat }] }]
`,
    workers: [],
  });
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const held = vendor.hold('narrow-chat');
  t.teardown(() => held.end());
  const pending = [0, 1, 2].map(() =>
    stack.post('/v1/chat/completions', account.apiKey, { model: 'chat', messages }),
  );
  await waitFor('the calls', () => held.waiting === 2);
  t.is(await worker.terminate(), 0);
  const slots = redisKeys.callsOfUpstream('narrow');
  t.is(await stack.redis.zcard(slots), 0);
  t.deepEqual(await new WorkerRegistryStore(stack.redis).findAlive('chat'), new Set());
  await startRole(t, 'worker', stack.env);
  held.end();
  let cost = 0;
  for (const each of pending) {
    const response = await each;
    t.is(response.status, 200);
    cost += ((await response.json()) as { usage: { cost_request: number } }).usage.cost_request;
  }
  await checkChargedOnce(t, stack, account.id, Number(cost.toFixed(9)));
});

test('if an api process is killed, its chats are cancelled at the vendor and charged for what was generated', async (t) => {
  const { stack, vendor } = await setUp(t);
  const account = await stack.createAccount();
  await startRole(t, 'worker', stack.env);
  const api = await startRole(t, 'api', stack.env);
  const url = String(api.readyLine['url']);
  const controller = new AbortController();
  t.teardown(() => controller.abort());
  const pending = fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({
      model: 'drip-chat',
      stream: true,
      messages: [{ role: 'user', content: 'x '.repeat(500) }],
    }),
    signal: controller.signal,
  });
  const response = await pending;
  const reader = response.body!.getReader();
  await reader.read();
  await api.kill();
  await t.throwsAsync(async () => {
    while (!(await reader.read()).done);
  });
  await waitFor('the settlement', async () => (await countReservations(stack, account.id)) === 0);
  t.true((await stack.readAccount(account.id)).balanceNano < 100_000_000_000n);
  t.is(vendor.requests.counters.total, 1);
});
