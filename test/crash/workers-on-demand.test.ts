import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { workerPart } from '../../scripts/start/parts.ts';
import { readDemand } from '../../scripts/start/read-demand.ts';
import { SupervisedPart, type Launch } from '../../scripts/start/supervise.ts';
import { WorkerPool } from '../../scripts/start/worker-pool.ts';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { EventLog } from '../scripts/start/fake-parts.ts';

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key] }
models:
  - { id: first, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: first }] }
  - { id: later, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: later }] }
`;

/** What an api process would say about chats, as the test sets it. */
interface ChatDemand {
  takeable: number;
  takeable_waiting_seconds: number;
  demand: number;
}

/** Serves the demand as an api process does. */
async function serveDemand(t: ExecutionContext) {
  const chat: ChatDemand = { takeable: 0, takeable_waiting_seconds: 0, demand: 0 };
  const state = { chat, isDown: false, workers: 1 };
  const server = createServer((request, response) => {
    const isRight = request.headers.authorization === 'Bearer secret' && request.url === '/v1/admin/demand';
    response.statusCode = state.isDown ? 503 : isRight ? 200 : 404;
    const queue = {
      waiting: 0,
      workers: state.workers,
      capacity: state.workers * 2,
      takeable_waiting_seconds: null,
    };
    const idle = { ...queue, takeable: 0, demand: 0 };
    response.end(JSON.stringify({ chat: { ...queue, ...state.chat }, image: idle, embedding: idle }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => server.close());
  return { state, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** A pool of worker processes that run two chats each. */
async function startPool(t: ExecutionContext, stack: TestStack) {
  const demand = await serveDemand(t);
  const events: string[] = [];
  const stopping = new AbortController();
  const parts: SupervisedPart[] = [];
  const pids = new Map<string, number>();
  const deaths: string[] = [];
  const pool = new WorkerPool({
    min: 1,
    max: 3,
    upAfterMs: 300,
    downAfterMs: 500,
    intervalMs: 50,
    readDemand: () => readDemand(demand.url, 'secret'),
    output: { printEvent: (name, text) => events.push(`${name} ${text}`) },
    run: async (name, onSpawned) => {
      const spec = workerPart({ name, env: { PATH: process.env['PATH'], ...stack.env }, hasChannel: true });
      const launch = (): Launch => {
        const launch = spec.launch();
        return { ...launch, args: [...launch.args, '--concurrency', '2'] };
      };
      const log = new EventLog();
      log.onSpawned = (pid) => pids.set(name, pid);
      log.onDied = ({ signal }) => deaths.push(`${name} ${signal}`);
      const part = new SupervisedPart({ ...spec, launch, onSpawned }, log);
      parts.push(part);
      await part.start();
      return part;
    },
  });
  await pool.start();
  const scaling = pool.scale(stopping.signal);
  t.teardown(async () => {
    stopping.abort();
    await scaling;
    await Promise.all(parts.map((part) => part.stop()));
  });
  return { pool, demand: demand.state, events, pids, deaths };
}

async function setUp(t: ExecutionContext) {
  t.timeout(180_000);
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: catalogOf(vendor.url), workers: [] });
  const started = await startPool(t, stack);
  await waitFor('the first worker', () => started.pool.isReady());
  return { vendor, stack, ...started };
}

test.serial(
  'a worker starts for work that waits, one without work stops, one with work never does, and no request is lost',
  async (t) => {
    const { vendor, stack, demand, events, pool } = await setUp(t);
    const held = { first: vendor.hold('first'), later: vendor.hold('later') };
    const send = async (model: string): Promise<number> => {
      const { apiKey } = await stack.createAccount();
      const body = { model, messages: [{ role: 'user', content: 'one' }] };
      return (await stack.post('/v1/chat/completions', apiKey, body)).status;
    };
    const first = [send('first'), send('first')];
    await waitFor('the first worker to have two chats', () => held.first.waiting === 2);
    const later = [send('later'), send('later')];
    demand.chat = { takeable: 2, takeable_waiting_seconds: 0.3, demand: 4 };
    await waitFor('a second worker to take the others', () => held.later.waiting === 2);
    demand.workers = 2;
    demand.chat = { takeable: 0, takeable_waiting_seconds: 0, demand: 4 };
    // On a busy machine, the demand may be unknown for a moment.
    const changes = (): string[] => events.filter((event) => /^worker \d/.test(event));
    t.deepEqual(changes(), ['worker 2 starts: 2 chats wait, the oldest for 0.3 s']);

    held.first.end();
    t.deepEqual(await Promise.all(first), [200, 200]);
    demand.chat.demand = 2;
    await waitFor('the idle worker to stop', () => changes().length === 2);
    t.is(changes()[1], 'worker 1 stops: no need of it for 500 ms');
    await waitFor('one worker to remain', async () => {
      const text = await pool.metrics.write();
      return text.includes('model_gateway_processes{role="worker"} 1\n');
    });
    t.is(held.later.waiting, 2);
    held.later.end();
    t.deepEqual(await Promise.all(later), [200, 200]);
    // What the stopped worker counted is still part of the sums.
    t.regex(
      await pool.metrics.write(),
      /^model_gateway_upstream_calls_total\{upstream="vendor",model="first",kind="success"\} 2$/m,
    );
    t.is(changes().length, 2);
  },
);

test.serial(
  'a worker that dies runs again, and while the demand is not known the number of workers stays, which is said once',
  async (t) => {
    const { stack, demand, events, pool, pids, deaths } = await setUp(t);
    const unknown = 'workers the demand is not known (the api responds with 503); their number stays at 1';
    const known = 'workers the demand is known again';
    demand.isDown = true;
    await waitFor('a message', () => events.includes(unknown));
    process.kill(pids.get('worker 1')!, 'SIGKILL');
    await waitFor('the death', () => deaths.length === 1);
    await waitFor('the worker to run again', () => pool.isReady());
    t.deepEqual(deaths, ['worker 1 SIGKILL']);
    const { apiKey } = await stack.createAccount();
    const body = { model: 'first', messages: [{ role: 'user', content: 'one' }] };
    t.is((await stack.post('/v1/chat/completions', apiKey, body)).status, 200);
    demand.isDown = false;
    await waitFor('another message', () => events.at(-1) === known);
    t.is(events.filter((event) => event === unknown).length, 1);
  },
);
