import test, { type ExecutionContext } from 'ava';
import type { ChangeContext } from '../../scripts/admin/command.ts';
import { openTrail } from '../../scripts/admin/open-trail.ts';
import { queueVerbs } from '../../scripts/admin/queue.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { readBalance } from '../support/billing.ts';
import { createJob, readJob } from '../support/jobs.ts';
import { startScriptedVendor, unstreamedChat } from '../support/scripted-vendor.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What waits and runs in all processes, for programs that start workers, and for the operator. */

interface Sums {
  readonly waiting: number;
  readonly waiting_for_slot: number;
  readonly running: number;
  readonly oldest_waiting_seconds: number;
}

interface QueueDemand extends Sums {
  readonly takeable: number;
  readonly takeable_waiting_seconds: number;
  readonly demand: number;
  readonly eta_seconds: number | null;
  readonly workers: number;
  readonly capacity: number;
  readonly models: Readonly<Record<string, Sums>>;
}

type Demand = Readonly<Record<'chat' | 'image' | 'embedding', QueueDemand>>;

const catalogOf = (url: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: '${url}', maxConcurrency: 2 }
models:
  - id: chat
    aliases: [chat-alias]
    type: chat
    context: 8192
    pricing: { type: tokens, prompt: 100, completion: 200 }
    routes: [{ upstream: vendor, model: chat }]
  - id: embed
    type: embedding
    context: 8192
    dimensions: { default: 4, max: 4 }
    pricing: { type: tokens, prompt: 100, completion: 0 }
    routes: [{ upstream: vendor, model: embed }]
`;

const body = { model: 'chat', messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 };

async function readDemand(stack: TestStack): Promise<Demand> {
  const response = await fetch(`${stack.url}/v1/admin/demand`);
  return (await response.json()) as Demand;
}

/** Reads the demand until it is as expected. Workers report once a second. */
const demandWhere = async (stack: TestStack, isExpected: (demand: Demand) => boolean): Promise<Demand> =>
  await waitFor('the demand', async () => {
    const demand = await readDemand(stack);
    return isExpected(demand) && demand;
  });

async function runQueueCommand<T>(
  stack: TestStack,
  verb: string,
  queue = '',
  flags: readonly string[] = [],
): Promise<T> {
  const { redis, mongo, config } = stack;
  const accounts = new AccountStore(mongo.db, config);
  const hotAccounts = new HotAccountStore(redis, accounts, new LedgerStore(mongo.db));
  const log = createLogger('test', 'silent');
  const trail = openTrail({ mongo }, () => undefined, null);
  const stores = { redis, hotAccounts, config, env: stack.env, log, trail };
  const context = { ...stores, positionals: [queue], flags: new Set(flags) };
  return (await queueVerbs[verb]!.run(context as unknown as ChangeContext)) as T;
}

/** A vendor that answers only when it is told to. */
async function startHeldVendor(t: ExecutionContext) {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const vendor = await startScriptedVendor(async () => {
    await released;
    return unstreamedChat;
  });
  t.teardown(() => vendor.close());
  return { url: `${vendor.url}/v1`, release };
}

test('without a worker of their queue, requests, durable jobs and lines of batches are counted by model, and could be taken', async (t) => {
  const stack = await useStack(t, {
    catalog: catalogOf('http://127.0.0.1:9/v1'),
    // It prepares the bucket, which a batch needs.
    workers: [{ queues: ['image'], concurrency: 1 }],
  });
  const account = await stack.createAccount();
  await createJob(stack, account, '/v1/chat/completions', body);
  await createJob(stack, account, '/v1/chat/completions', { ...body, model: 'chat-alias' });
  const requests = Array.from({ length: 7 }, (_, i) => ({
    custom_id: `line-${i}`,
    body: { model: 'embed', input: `text ${i}` },
  }));
  const batch = { endpoint: '/v1/embeddings', completion_window: '24h', requests };
  const created = await stack.post('/v1/batches', account.apiKey, batch);
  t.is(created.status, 200, await created.text());
  const chat = stack.post('/v1/chat/completions', account.apiKey, body);
  const {
    chat: chats,
    embedding,
    image,
  } = await demandWhere(stack, (demand) => demand.chat.waiting === 3 && demand.embedding.waiting === 7);
  t.like(chats, { takeable: 3, waiting_for_slot: 0, running: 0, demand: 3, workers: 0, capacity: 0 });
  t.is(chats.eta_seconds, null, 'nothing shows how long it takes');
  t.deepEqual(Object.keys(chats.models), ['chat']);
  t.like(embedding, { takeable: 7, running: 0, demand: 1, models: { embed: { waiting: 7 } } });
  t.like(image, { waiting: 0, takeable: 0, demand: 0, eta_seconds: 0, models: {} });
  await demandWhere(
    stack,
    (demand) => demand.chat.takeable_waiting_seconds >= 1 && demand.embedding.oldest_waiting_seconds >= 1,
  );

  await stack.startWorker();
  t.is((await chat).status >= 500, true, 'no server listens at the vendor’s address');
  const empty = await demandWhere(stack, (demand) => demand.chat.waiting === 0 && demand.chat.workers === 1);
  t.is(empty.chat.capacity, 256);
});

test('at the limit of a vendor, what waits for a call slot is counted apart, because more workers would not help', async (t) => {
  const vendor = await startHeldVendor(t);
  const stack = await useStack(t, { catalog: catalogOf(vendor.url) });
  const account = await stack.createAccount();
  const responses = Array.from({ length: 6 }, () => stack.post('/v1/chat/completions', account.apiKey, body));
  const { chat } = await demandWhere(stack, (demand) => demand.chat.waiting_for_slot === 4);
  t.like(chat, { waiting: 4, running: 2, takeable: 0, takeable_waiting_seconds: 0, demand: 6, workers: 1 });
  t.like(chat.models, { chat: { waiting: 4, waiting_for_slot: 4, running: 2 } });
  const { chat: status } = await runQueueCommand<Record<string, object>>(stack, 'status');
  t.like(status, { waiting: 4, waiting_for_slot: 4, active: 2, workers: 1 });
  vendor.release();
  for (const response of responses) t.is((await response).status, 200);
  const after = await demandWhere(stack, (demand) => demand.chat.running === 0);
  t.like(after.chat, { waiting: 0, eta_seconds: 0 });
});

test('draining a queue reaches requests and jobs that wait for a call slot: they are free, and clients do not send them again', async (t) => {
  const vendor = await startHeldVendor(t);
  const stack = await useStack(t, { catalog: catalogOf(vendor.url) });
  const account = await stack.createAccount();
  const responses = Array.from({ length: 5 }, () => stack.post('/v1/chat/completions', account.apiKey, body));
  await demandWhere(stack, (demand) => demand.chat.waiting_for_slot === 3);
  const { id } = await createJob(stack, account, '/v1/chat/completions', body);
  await demandWhere(stack, (demand) => demand.chat.waiting_for_slot === 4);
  t.like(await runQueueCommand(stack, 'drain', 'chat', ['dry-run']), {
    effects: { jobs: 1, requests: 3, accounts: 1 },
  });
  t.deepEqual(await runQueueCommand(stack, 'drain', 'chat'), { queue: 'chat', jobs: 1, requests: 3 });
  vendor.release();
  const ended = await Promise.all(responses);
  t.deepEqual(
    ended.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 200, 503, 503, 503],
  );
  for (const response of ended.filter(({ status }) => status === 503)) {
    t.is(response.headers.get('x-should-retry'), 'false');
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    t.is(error.code, 'service_unavailable');
    t.regex(error.message, /^The operator cancelled all requests/);
  }
  await waitFor('the job to end', async () => (await readJob(stack, account, id)).status === 'cancelled');
  const { reserved } = await waitFor('the reservations to end', async () => {
    const balance = await readBalance(stack.redis, account.id);
    return balance.reserved === 0n && balance;
  });
  t.is(reserved, 0n);
});

test('whoever has a token of the operator reads the demand, and nobody else', async (t) => {
  const adminToken = 'another-token-of-the-operator-which-is-long';
  const env = { METRICS_TOKEN: 'a-token-of-the-operator', ADMIN_TOKEN: adminToken };
  const stack = await useStack(t, { workers: [], env });
  const read = async (authorization?: string): Promise<number> =>
    (await fetch(`${stack.url}/v1/admin/demand`, { headers: { ...(authorization && { authorization }) } }))
      .status;
  t.is(await read('Bearer a-token-of-the-operator'), 200);
  t.is(await read(`Bearer ${adminToken}`), 200);
  t.is(await read('Bearer another-token'), 401);
  t.is(await read(), 401);
});

test('the work of the whole gateway is shown as metrics', async (t) => {
  const stack = await useStack(t, { catalog: catalogOf('http://127.0.0.1:9/v1'), workers: [] });
  const account = await stack.createAccount();
  await createJob(stack, account, '/v1/chat/completions', body);
  await demandWhere(stack, (demand) => demand.chat.waiting === 1);
  const text = await (await fetch(`${stack.url}/metrics`)).text();
  t.regex(text, /^model_gateway_work_waiting\{queue="chat",model="chat",class="job"\} 1$/m);
  t.regex(text, /^model_gateway_work_running\{queue="chat",model="chat",class="job"\} 0$/m);
  t.regex(text, /^model_gateway_workers\{queue="chat",version="none"\} 0$/m);
});
