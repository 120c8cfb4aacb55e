import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { WorkerRegistryStore } from '../../shared/work/queue/worker-registry-store.ts';
import { startWorker } from '../../workers/worker.ts';
import { captureLog } from '../support/captured-log.ts';
import { allQueues, useStack, type TestStack } from '../support/stack.ts';

/** The metrics of an api process, and who may read them. */

/** The values of all metrics, by name and labels as they are written. */
async function readValues(url: string): Promise<Map<string, number>> {
  const text = await (await fetch(url)).text();
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name, value] = /^(\w+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    if (name !== undefined) values.set(name, Number(value));
  }
  return values;
}

interface Sent {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Reads the metrics with any headers, also those that fetch does not let its caller set. */
async function readStatus({ url }: TestStack, { headers = {} }: Sent = {}): Promise<number> {
  return await new Promise((resolve, reject) => {
    request(`${url}/metrics`, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on('error', reject)
      .end();
  });
}

test('requests are counted by operation, model, outcome and code', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount();
  const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'hello' }] });
  t.is((await stack.post('/v1/chat/completions', apiKey, chat('demo-echo'))).status, 200);
  t.is((await stack.post('/v1/chat/completions', apiKey, chat('no-such-model'))).status, 404);
  t.is((await stack.post('/v1/chat/completions', null, chat('demo-echo'))).status, 401);
  t.is((await fetch(`${stack.url}/nowhere`)).status, 404);
  const labelsOf = (operation: string, model: string, outcome: string, code: string): string =>
    `model_gateway_requests_total{operation="${operation}",model="${model}",outcome="${outcome}",code="${code}"}`;
  const values = await readValues(`${stack.url}/metrics`);
  t.deepEqual(
    [
      labelsOf('createChatCompletion', 'demo-echo', 'success', 'none'),
      labelsOf('createChatCompletion', 'other', 'rejected', 'model_not_found'),
      labelsOf('createChatCompletion', 'other', 'rejected', 'invalid_api_key'),
      labelsOf('other', 'none', 'rejected', 'not_found'),
    ].map((name) => values.get(name)),
    [1, 1, 1, 1],
  );
  const labels = 'operation="createChatCompletion",model="demo-echo",outcome="success"';
  t.is(values.get(`model_gateway_request_duration_seconds_count{${labels}}`), 1);
});

test('a streamed chat is measured until its first token and per token, and the stores are measured', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount();
  const body = { model: 'demo-echo', stream: true, messages: [{ role: 'user', content: 'one two three' }] };
  await (await stack.post('/v1/chat/completions', apiKey, body)).text();
  const values = await readValues(`${stack.url}/metrics`);
  const read = (name: string): number | undefined => values.get(`model_gateway_${name}`);
  t.is(read('time_to_first_token_seconds_count{model="demo-echo"}'), 1);
  t.is(read('time_per_output_token_seconds_count{model="demo-echo"}'), 1);
  t.true(read('redis_round_trip_seconds_count')! > 0);
  t.true(read('mongodb_round_trip_seconds_count{outcome="success"}')! > 0);
  t.true(read('upstream_slots{upstream="builtin"}')! > 0);
  t.is(read('upstream_slots_used{upstream="builtin"}'), 0);
  t.is(read('upstream_breakers_open{upstream="builtin"}'), 0);
});

test('all names begin with the name of the product, and none is repeated', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const text = await (await fetch(`${stack.url}/metrics`)).text();
  const names = text.split('\n').flatMap((line) => /^# TYPE (\w+) /.exec(line)?.[1] ?? []);
  t.true(names.length > 20);
  t.deepEqual(
    names.filter((name) => !name.startsWith('model_gateway_')),
    [],
  );
  t.is(new Set(names).size, names.length);
  t.regex(text, /^model_gateway_memory_budget_bytes\{budget="requests"\} 512000000$/m);
  t.regex(text, /model_gateway_build_info\{role="api",version="[\d.]+",build="[\da-f]{8}"\} 1/);
});

test('without a token, only this machine may read the metrics, and no proxy', async (t) => {
  const stack = await useStack(t, { workers: [] });
  t.is(await readStatus(stack), 200);
  t.is(await readStatus(stack, { headers: { host: 'localhost:8080' } }), 200);
  for (const headers of [
    { 'x-forwarded-for': '203.0.113.7' },
    { forwarded: 'for=203.0.113.7' },
    { via: '1.1 proxy' },
    { 'x-real-ip': '203.0.113.7' },
    { 'x-forwarded-proto': 'https' },
    // A page can connect to this machine under a name of its own.
    { host: 'attacker.example' },
    // With CORS_ORIGINS=* it could read the response.
    { origin: 'https://attacker.example' },
  ])
    t.is(await readStatus(stack, { headers }), 403, JSON.stringify(headers));
  const behindProxy = await useStack(t, { workers: [], env: { TRUST_PROXY: 'on' } });
  t.is(await readStatus(behindProxy), 403);
});

test('with a token, whoever sends it may read the metrics, and nobody else', async (t) => {
  const stack = await useStack(t, { workers: [], env: { METRICS_TOKEN: 'secret', TRUST_PROXY: 'on' } });
  const read = async (authorization: string): Promise<number> =>
    await readStatus(stack, { headers: { authorization, 'x-forwarded-for': '203.0.113.7' } });
  t.is(await read('Bearer secret'), 200);
  t.is(await read('bearer  secret'), 200);
  for (const wrong of [
    'Bearer secre',
    'Bearer secret2',
    'Bearer',
    'Basic secret',
    `Bearer ${'x'.repeat(5_000)}`,
  ])
    t.is(await read(wrong), 401, wrong.slice(0, 20));
  t.is(await readStatus(stack), 401);
});

test('calls to vendors, tokens and roubles are counted by the worker', async (t) => {
  const stack = await useStack(t, { workers: [], env: { METRICS_PORT: '0' } });
  const { log, lines } = captureLog();
  const worker = await startWorker(stack.config, stack.env, log, allQueues);
  t.teardown(() => worker.stop());
  const { metricsUrl } = lines.find(({ msg }) => msg === 'worker ready') as unknown as { metricsUrl: string };
  const { apiKey } = await stack.createAccount({ balance: '10', freeRequests: 0 });
  const body = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] };
  const response = await stack.post('/v1/chat/completions', apiKey, body);
  t.is(response.status, 200);
  const { usage } = (await response.json()) as {
    usage: { prompt_tokens: number; completion_tokens: number; cost_request: number };
  };
  const values = await readValues(metricsUrl);
  const value = (name: string): number | undefined => values.get(`model_gateway_${name}`);
  t.is(value('upstream_calls_total{upstream="builtin",model="demo-echo",kind="success"}'), 1);
  t.is(value('call_slot_wait_seconds_count{upstream="builtin",model="demo-echo",class="interactive"}'), 1);
  t.is(value('tokens_total{model="demo-echo",kind="prompt"}'), usage.prompt_tokens);
  t.is(value('tokens_total{model="demo-echo",kind="completion"}'), usage.completion_tokens);
  t.true(Math.abs((value('cost_roubles_total{model="demo-echo"}') ?? 0) - usage.cost_request) < 1e-9);
});

test('a worker whose METRICS_PORT is in use exits before it takes any work', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  const stack = await useStack(t, { workers: [], env: { METRICS_PORT: String(port) } });
  await t.throwsAsync(startWorker(stack.config, stack.env, captureLog().log, allQueues), {
    instanceOf: ConfigError,
  });
  t.is((await new WorkerRegistryStore(stack.redis).findAlive('chat')).size, 0);
});
