import test, { type ExecutionContext } from 'ava';
import { defaultNoWorkerTimeoutMs } from '../../api/requests/replies/worker-absence.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { readAdmin } from '../support/admin.ts';
import { captureLog, type LogLine } from '../support/captured-log.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole, type RoleProcess } from '../support/worker-process.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/** Worker processes that stop without dying, or die while they hold call slots. */

const messages = [{ role: 'user', content: 'one two three' }];
const initialNano = 100_000_000_000n;

interface Call {
  readonly name: string;
  readonly path: string;
  readonly body: object;
  readonly headers?: Record<string, string>;
}

/** One call of each kind. */
function listCalls(name: string): Call[] {
  const chat = '/v1/chat/completions';
  const key = (kind: string) => ({ headers: { 'Idempotency-Key': `${name}-${kind}` } });
  const image = { path: '/v1/images/generations', body: { model: 'slow-image', prompt: 'a red fox' } };
  const embedding = { path: '/v1/embeddings', body: { model: 'slow-embedding', input: 'a red fox' } };
  const plain = { path: chat, body: { model: 'slow-chat', messages } };
  return [
    { name: 'chat', ...plain },
    { name: 'chat with a key', ...plain, ...key('chat') },
    { name: 'stream', path: chat, body: { model: 'slow-chat', messages, stream: true } },
    { name: 'image', ...image },
    { name: 'image with a key', ...image, ...key('image') },
    { name: 'embedding', ...embedding },
    { name: 'embedding with a key', ...embedding, ...key('embedding') },
  ];
}

/** How many connections wait for work of BullMQ. A Cluster tells only those of one node. */
const countWaits = async ({ redis }: TestStack): Promise<number> =>
  String(await redis.client('LIST')).split('cmd=bzpopmin').length - 1;

async function checkRefused(t: ExecutionContext, name: string, response: Response): Promise<void> {
  const { error } = (await response.json()) as { error?: { code: string } };
  t.is(response.status, 503, name);
  t.is(error?.code, 'service_unavailable', name);
  t.truthy(response.headers.get('retry-after'), name);
}

async function sendAll(
  stack: TestStack,
  account: TestAccount,
  name: string,
): Promise<[name: string, Response][]> {
  return await Promise.all(
    listCalls(name).map(async (call): Promise<[string, Response]> => {
      const response = await stack.post(call.path, account.apiKey, call.body, call.headers);
      return [`${name}: ${call.name}`, response];
    }),
  );
}

async function waitForNoReservations(stack: TestStack, { id }: TestAccount): Promise<void> {
  await waitFor(
    'the reservations to be released',
    async () => (await stack.redis.hlen(redisKeys.reservations(shardOf(id)))) === 0,
  );
}

async function checkLedger(t: ExecutionContext, stack: TestStack): Promise<void> {
  const { differences } = await readAdmin<{ differences: unknown[] }>(stack.env, 'ledger', 'verify');
  t.deepEqual(differences, []);
}

test('if the only worker is stopped, every caller gets a 503, the log and the health check say so, and when the worker continues, nobody is charged for what was refused', async (t) => {
  t.timeout(180_000);
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const { log, lines } = captureLog();
  const stack = await useStack(t, {
    catalog: vendorCatalog(vendor.url),
    workers: [],
    api: { noWorkerTimeoutMs: defaultNoWorkerTimeoutMs },
    log,
  });
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const models = ['gpt+slow-4000', 'img+slow-4000', 'emb+slow-4000'];
  const held = models.map((model) => vendor.hold(model));
  const accepted = sendAll(stack, account, 'accepted');
  // The two embeddings may share a call.
  await waitFor('the vendor calls', () => held.reduce((sum, { waiting }) => sum + waiting, 0) >= 6);
  const waits = await waitFor('the worker to wait for work', () => countWaits(stack));
  worker.child.kill('SIGSTOP');
  const queued = sendAll(stack, account, 'queued');
  for (const [name, response] of [...(await accepted), ...(await queued)])
    await checkRefused(t, name, response);

  const ofQueue = (message: string): string[] =>
    lines.filter(({ msg }) => msg === message).map(({ queue }) => String(queue));
  t.deepEqual([...new Set(ofQueue('no live worker for queue'))].toSorted(), ['chat', 'embedding', 'image']);
  const [line] = lines.filter(({ msg }) => msg === 'no live worker for queue') as [LogLine];
  t.is(line['level'], 50);
  const health = (await (await fetch(`${stack.url}/v1/health`)).json()) as Record<string, unknown>;
  t.like(health, { status: 'degraded', checks: { workers: 'down', redis: 'ok' } });

  // New callers need not wait as long as the first ones did.
  const sinceMs = performance.now();
  for (const [name, response] of await sendAll(stack, account, 'new')) await checkRefused(t, name, response);
  t.true(performance.now() - sinceMs < 2 * liveness.worker.deadMs);
  await waitForNoReservations(stack, account);
  t.is((await stack.readAccount(account.id)).balanceNano, initialNano);

  const continued = worker
    .nextLine('this worker counted as dead, and its call slots were freed')
    .catch(() => null);
  const noted = worker.nextLine('this process did not run for a while');
  worker.child.kill('SIGCONT');
  t.true(Number((await noted)['seconds']) > 5);
  for (const one of held) one.end();
  await waitFor('the workers to be noticed', () => ofQueue('queue has a live worker again').length === 3);
  // While the worker reconnects, requests may still fail. They are not charged either.
  const response = await waitFor('a request to be served', async () => {
    const served = await stack.post('/v1/chat/completions', account.apiKey, { model: 'chat', messages });
    return served.status === 200 && served;
  });
  const { usage } = (await response.json()) as { usage: { cost_request: number } };
  await waitFor('the vendor calls to end', () => vendor.requests.entries.every(({ isOver }) => isOver));
  await waitForNoReservations(stack, account);
  const { balanceNano } = await stack.readAccount(account.id);
  t.is(Number(initialNano - balanceNano) / 1e9, usage.cost_request);
  await checkLedger(t, stack);
  // For each of its queues of BullMQ. Otherwise it would find work only by looking again and again.
  await waitFor(
    'the worker to wait for work on its connections',
    async () => (await countWaits(stack)) >= waits,
  );
  await worker.kill();
  // No other worker lived, so nobody needed its slots.
  t.is(await continued, null);
});

const slotCount = 4;

async function setUpNarrow(
  t: ExecutionContext,
): Promise<{ stack: TestStack; vendor: VendorSimulator; first: RoleProcess }> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const catalog = `
upstreams: { narrow: { kind: openai, baseUrl: "${vendor.url}/v1", maxConcurrency: ${slotCount} } }
models: [{ id: chat, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: narrow, model: narrow-chat }] }]
`;
  const stack = await useStack(t, { catalog, workers: [] });
  return { stack, vendor, first: await startRole(t, 'worker', stack.env) };
}

const slots = redisKeys.callsOfUpstream('narrow');

for (const { what, signal, returns } of [
  { what: 'is killed', signal: 'SIGKILL', returns: false },
  { what: 'is stopped and continues later', signal: 'SIGSTOP', returns: true },
] as const) {
  test(`if a worker that holds all slots of an upstream ${what}, another worker gets them once it counts as dead, and never more than there are`, async (t) => {
    t.timeout(180_000);
    const { stack, vendor, first } = await setUpNarrow(t);
    const account = await stack.createAccount();
    const held = vendor.hold('narrow-chat');
    t.teardown(() => held.end());
    const send = () => stack.post('/v1/chat/completions', account.apiKey, { model: 'chat', messages });
    const pending = Array.from({ length: slotCount }, send);
    await waitFor('the calls of the first worker', () => held.waiting === slotCount);
    const second = await startRole(t, 'worker', stack.env);
    const later = Array.from({ length: slotCount }, send);
    const sinceMs = performance.now();
    first.child.kill(signal);
    // The vendor still sees the calls of a stopped worker. Those of a killed one end with its connections.
    const ofFirst = returns ? slotCount : 0;
    let most = 0;
    await waitFor('the calls of the second worker', () => {
      most = Math.max(most, held.waiting);
      return performance.now() - sinceMs > 1_000 && held.waiting === ofFirst + slotCount;
    });
    // The leases last 30 s.
    t.true(performance.now() - sinceMs < 20_000);
    t.true(most <= slotCount + ofFirst);
    if (returns) {
      const before = await stack.redis.zrange(slots, '0', '-1');
      t.is(before.length, slotCount);
      const noticed = first.nextLine('this worker counted as dead, and its call slots were freed');
      first.child.kill('SIGCONT');
      t.like(await noticed, { slots: slotCount });
      t.deepEqual(await stack.redis.zrange(slots, '0', '-1'), before);
    }
    held.end();
    let cost = 0;
    for (const each of [...pending, ...later]) {
      const response = await each;
      t.is(response.status, 200);
      cost += ((await response.json()) as { usage: { cost_request: number } }).usage.cost_request;
    }
    await waitFor('the slots to be free', async () => (await stack.redis.zcard(slots)) === 0);
    await waitForNoReservations(stack, account);
    const { balanceNano } = await stack.readAccount(account.id);
    t.is(Number(initialNano - balanceNano) / 1e9, Number(cost.toFixed(9)));
    await checkLedger(t, stack);
    await second.kill();
  });
}
