import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { ModelHistories, ModelHour, ModelStatus } from '../../shared/contract/models.ts';
import type { LogsSummary } from '../../shared/contract/system.ts';
import { publishInvalidation } from '../../shared/platform/redis/invalidation-channel.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { RequestStatsStore } from '../../shared/ledger/request-stats-store.ts';
import { RequestSums } from '../../shared/ledger/request-sums.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { startApiOf } from '../support/other-api.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Public statistics without a key: model status, the summary of a day, and the list of servers. */

/** A statistics step so long that no test sees its end, and one so short that every read is fresh. */
const longStepMs = 1_000 * 365 * 86_400_000;
const shortStepMs = 1;

type Statuses = Readonly<Record<string, ModelStatus>>;

async function read<T>(url: string, path: string): Promise<T> {
  const response = await fetch(`${url}${path}`);
  if (response.status !== 200) throw new Error(`${path} returned ${response.status}`);
  return (await response.json()) as T;
}
const readStatuses = (url: string): Promise<Statuses> => read(url, '/v1/models/status');
const readSummary = (url: string): Promise<LogsSummary> => read(url, '/v1/logs/summary');

/** Records requests in the stats without sending requests. */
async function record(stack: TestStack, model: string, succeeded: number, failed: number): Promise<void> {
  const sums = new RequestSums();
  for (let i = 0; i < succeeded + failed; i++) {
    const success = i < succeeded;
    sums.add({
      model,
      success,
      responseCode: success ? 200 : 502,
      durationMs: 200,
      billedMs: 100,
      promptTokens: 1,
      completionTokens: 2,
      isAwaited: true,
      costNano: 0n,
      vendorCostNano: null,
    });
  }
  await new RequestStatsStore(stack.redis).record(sums);
}

async function useVendor(t: ExecutionContext): Promise<VendorSimulator> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  return vendor;
}

/** The vendor takes 20 ms, so that no call is measured as zero milliseconds. */
const catalogOf = ({ url }: VendorSimulator): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${url}/v1", apiKeys: [vendor-key] }
  keyless: { kind: openai, baseUrl: "${url}/v1", apiKeys: [env:NO_SUCH_KEY] }
models:
  - { id: "lab/chat:1", aliases: [talk], type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: "gpt+slow-20" }] }
  - { id: failing, type: vision, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: "gpt+fail-500" }] }
  - { id: refusing, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: "gpt+fail-400" }] }
  - { id: dripping, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: "gpt+drip-200" }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 1 }, routes: [{ upstream: vendor, model: "emb+slow-20" }] }
  - { id: pictures, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: "img+slow-20" }] }
  - { id: keyless, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: keyless }] }
`;

test('the statistics include requests of every kind and outcome within seconds', async (t) => {
  const vendor = await useVendor(t);
  const stack = await useStack(t, { catalog: catalogOf(vendor), api: { statsStepMs: shortStepMs } });
  const { apiKey } = await stack.createAccount();
  const messages = [{ role: 'user', content: 'hi' }];
  const calls = [
    { path: '/v1/chat/completions', body: { model: 'talk', messages }, status: 200 },
    { path: '/v1/chat/completions', body: { model: 'failing', messages }, status: 502 },
    { path: '/v1/chat/completions', body: { model: 'refusing', messages }, status: 400 },
    { path: '/v1/embeddings', body: { model: 'vectors', input: 'one two three' }, status: 200 },
    {
      path: '/v1/images/generations',
      body: { model: 'pictures', prompt: 'a red fox', response_format: 'b64_json' },
      status: 200,
    },
  ];
  const outcomes = await Promise.all(
    calls.flatMap(({ path, body, status }) =>
      Array.from({ length: 5 }, async () => {
        const response = await stack.post(path, apiKey, body);
        await response.arrayBuffer();
        return response.status === status;
      }),
    ),
  );
  t.deepEqual(new Set(outcomes), new Set([true]));
  // These requests do not reach a model, so the statistics do not include them.
  t.is((await stack.post('/v1/chat/completions', null, { model: 'talk', messages })).status, 401);
  t.is((await stack.post('/v1/chat/completions', apiKey, { model: 'talk' })).status, 422);

  const summary = await waitFor('all requests to be counted', async () => {
    const current = await readSummary(stack.url);
    return current.total_requests >= 25 && current;
  });
  const rows = stack.mongo.db.collection<{ promptTokens: number; completionTokens: number }>('request_logs');
  await waitFor('the log rows', async () => (await rows.countDocuments({})) === 25);
  const tokens = (await rows.find({}).toArray()).reduce(
    (sum, row) => sum + row.promptTokens + row.completionTokens,
    0,
  );
  t.deepEqual(summary, {
    version: '0.11.2β',
    period_hours: 24,
    total_requests: 25,
    total_tokens: tokens,
    success_rate: 75,
  });

  const statuses = await readStatuses(stack.url);
  t.deepEqual(Object.keys(statuses), [
    'lab/chat:1',
    'failing',
    'refusing',
    'dripping',
    'vectors',
    'pictures',
    'keyless',
  ]);
  const unknown = { success_rate: 0, tps: null, art: null };
  t.deepEqual(statuses['failing'], { ...unknown, message: 'Dead' });
  t.deepEqual(statuses['refusing'], { ...unknown, message: 'Not enough data' });
  t.deepEqual(statuses['dripping'], { ...unknown, message: 'Not enough data' });
  t.deepEqual(statuses['keyless'], { ...unknown, message: 'Disabled' });
  for (const id of ['lab/chat:1', 'vectors', 'pictures']) {
    const { message, success_rate: rate, tps, art, ...rest } = statuses[id]!;
    t.deepEqual({ message, rate, rest }, { message: 'Good', rate: 100, rest: {} });
    t.true(art! > 0 && Number.isInteger(Math.round(art! * 1e9) / 1e6), `${id} took ${art} s`);
    if (id === 'pictures') t.is(tps, undefined);
    else t.true(tps! > 0, `${id} had ${tps} tokens per second`);
  }
});

test('if the caller disconnects, the request is part of the request total, but does not affect the status of the model', async (t) => {
  const vendor = await useVendor(t);
  const stack = await useStack(t, { catalog: catalogOf(vendor), api: { statsStepMs: shortStepMs } });
  const { apiKey } = await stack.createAccount();
  const caller = new AbortController();
  const response = await fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model: 'dripping', stream: true, messages: [{ role: 'user', content: 'hi' }] }),
    signal: caller.signal,
  });
  await response.body!.getReader().read();
  caller.abort();
  const summary = await waitFor('the request to be counted', async () => {
    const current = await readSummary(stack.url);
    return current.total_requests > 0 && current;
  });
  t.like(summary, { total_requests: 1, success_rate: 0 });
  t.is((await readStatuses(stack.url))['dripping']?.message, 'Not enough data');
  await record(stack, 'dripping', 5, 0);
  await waitFor(
    'the other requests to be counted',
    async () => (await readSummary(stack.url)).total_requests === 6,
  );
  t.is((await readSummary(stack.url)).success_rate, 100);
  await waitFor('the model to have a good status', async () => {
    return (await readStatuses(stack.url))['dripping']?.message === 'Good';
  });
});

test('the status message matches the success rate, including at its boundaries', async (t) => {
  const cases = [
    [91, 9, 91, 'Good'],
    [9, 1, 90, 'Normal'],
    [8, 2, 80, 'Acceptable'],
    [7, 3, 70, 'Bad'],
    [6, 4, 60, 'Dead'],
    [0, 5, 0, 'Dead'],
    [5, 0, 100, 'Good'],
    [4, 0, 100, 'Not enough data'],
    [2, 1, 66.67, 'Not enough data'],
  ] as const;
  const models = cases.map(
    (_, i) =>
      `  - { id: m${i}, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: builtin, model: demo-echo }] }`,
  );
  const catalog = `upstreams:\n  builtin: { kind: builtin }\nmodels:\n${models.join('\n')}\n`;
  const stack = await useStack(t, { catalog, workers: [] });
  for (const [i, [succeeded, failed]] of cases.entries()) await record(stack, `m${i}`, succeeded, failed);
  await record(stack, 'no-longer-there', 100, 0);
  const statuses = await readStatuses(stack.url);
  t.deepEqual(
    statuses,
    Object.fromEntries(
      cases.map(([succeeded, , rate, message], i) => [
        `m${i}`,
        {
          message,
          success_rate: rate,
          tps: succeeded === 0 ? null : 20,
          art: succeeded === 0 ? null : 0.2,
        },
      ]),
    ),
  );
});

test('all servers show the same statistics until the step ends, but a model that is disabled is shown as disabled immediately', async (t) => {
  const options = { statsStepMs: longStepMs };
  const stack = await useStack(t, { workers: [], api: options });
  const other = await startApiOf(stack, stack.config, options);
  t.teardown(() => other.stop());
  await record(stack, 'demo-echo', 3, 2);
  const [first, firstSummary] = [await readStatuses(stack.url), await readSummary(stack.url)];
  t.like(first['demo-echo'], { message: 'Dead', success_rate: 60 });
  t.like(firstSummary, { total_requests: 5, total_tokens: 15, success_rate: 60 });
  await record(stack, 'demo-echo', 95, 0);
  for (const url of [other.url, stack.url]) {
    t.deepEqual(await readStatuses(url), first);
    t.deepEqual(await readSummary(url), firstSummary);
  }

  await stack.redis.sadd(redisKeys.disabledModels, 'demo-echo');
  await publishInvalidation(stack.redis, { kind: 'models' });
  for (const url of [stack.url, other.url]) {
    const statuses = await waitFor('the model to be disabled', async () => {
      const current = await readStatuses(url);
      return current['demo-echo']?.message === 'Disabled' && current;
    });
    t.deepEqual(statuses, { ...first, 'demo-echo': { ...first['demo-echo']!, message: 'Disabled' } });
  }
});

test('the history has 24 hours of each listed model; without requests, only their number is known', async (t) => {
  const vendor = await useVendor(t);
  const catalog = catalogOf(vendor);
  const stack = await useStack(t, { catalog, workers: [], api: { statsStepMs: shortStepMs } });
  await record(stack, 'lab/chat:1', 3, 1);
  await record(stack, 'pictures', 1, 0);
  await record(stack, 'no-longer-there', 1, 0);
  const history = await read<ModelHistories>(stack.url, '/v1/models/history');
  t.deepEqual(Object.keys(history), ['lab/chat:1', 'failing', 'refusing', 'dripping', 'vectors', 'pictures']);
  for (const hours of Object.values(history)) {
    t.is(hours.length, 24);
    t.regex(hours[0]!.hour, /:00:00\.000Z$/);
    for (const [i, { hour }] of hours.entries())
      if (i > 0) t.is(Date.parse(hour) - Date.parse(hours[i - 1]!.hour), 3_600_000);
  }
  // The hour may end in between.
  const sum = (id: string) => history[id]!.filter(({ requests }) => requests > 0);
  const [{ hour: _, ...chat }, ...more] = sum('lab/chat:1') as [ModelHour, ...ModelHour[]];
  t.deepEqual([chat, more], [{ requests: 4, success_rate: 75, tps: 20, art: 0.2 }, []]);
  t.like(sum('pictures')[0], { requests: 1, success_rate: 100, tps: null, art: 0.2 });
  const { hour: __, ...quiet } = history['vectors']![23]!;
  t.deepEqual(quiet, { requests: 0, success_rate: null, tps: null, art: null });
});

test('caches may store the statistics for the rest of the step', async (t) => {
  const stack = await useStack(t, { workers: [] });
  for (const path of ['/v1/models/status', '/v1/models/history', '/v1/logs/summary']) {
    const response = await fetch(`${stack.url}${path}`);
    t.is(response.status, 200);
    const [, seconds] = /^public, max-age=(\d+)$/.exec(response.headers.get('cache-control') ?? '') ?? [];
    t.true(Number(seconds) >= 0 && Number(seconds) <= 30);
  }
});

testWithOwnStore('Redis')(
  'while Redis is unavailable, the last known statistics are returned, or a 503 if there are none',
  async (t) => {
    const options = { statsStepMs: shortStepMs };
    const stack = await useStack(t, { workers: [], durableRedis: true, api: options });
    const other = await startApiOf(stack, stack.config, options);
    t.teardown(() => other.stop());
    await record(stack, 'demo-echo', 5, 0);
    const statuses = await readStatuses(stack.url);
    const summary = await readSummary(stack.url);
    t.is(statuses['demo-echo']?.message, 'Good');
    await stack.killRedis();
    t.deepEqual(await readStatuses(stack.url), statuses);
    t.deepEqual(await readSummary(stack.url), summary);
    for (const path of ['/v1/models/status', '/v1/models/history', '/v1/logs/summary']) {
      const response = await fetch(`${other.url}${path}`);
      t.is(response.status, 503);
      t.true(Number(response.headers.get('retry-after')) > 0);
      t.like(await response.json(), { error: { code: 'service_unavailable' } });
    }
    await stack.restartRedis();
    await waitFor(
      'Redis to be available again',
      async () => (await stack.redis.ping().catch(() => null)) === 'PONG',
    );
    await record(stack, 'demo-echo', 0, 5);
    for (const url of [stack.url, other.url]) {
      await waitFor('statistics that include both records', async () => {
        const response = await fetch(`${url}/v1/models/status`);
        const current = (await response.json()) as Statuses;
        return response.status === 200 && current['demo-echo']?.success_rate === 50;
      });
    }
  },
);

test('the list of servers reflects the configuration, in the format that clients expect', async (t) => {
  const standalone = await useStack(t, { workers: [] });
  const describe = (url: string): object => ({
    base_url: `${url}/v1`,
    health_url: `${url}/v1/health`,
    server_url: url,
  });
  const [main, ...more] = await read<Record<string, string>[]>(standalone.url, '/v1/servers');
  t.deepEqual(more, []);
  t.like(main, { name: 'main', ...describe(standalone.url) });
  t.is((await fetch(main!['health_url']!)).status, 200);

  const configured = await useStack(t, {
    workers: [],
    env: {
      PUBLIC_URL: 'https://api.example.com/v1/',
      BACKUP_URL: 'https://backup.example.com//',
      DIRECT_URL: 'http://direct.example.com:8080/gateway/v1',
    },
  });
  const servers = await read<Record<string, string>[]>(configured.url, '/v1/servers');
  t.is(servers.length, 3);
  t.like(servers[0], { name: 'main', ...describe('https://api.example.com') });
  t.like(servers[1], { name: 'backup', ...describe('https://backup.example.com') });
  t.like(servers[2], { name: 'direct', ...describe('http://direct.example.com:8080/gateway') });
  for (const server of servers) {
    t.deepEqual(Object.keys(server), ['name', 'description', 'base_url', 'health_url', 'server_url']);
    t.truthy(server['description']);
  }
});
