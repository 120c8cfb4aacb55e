import test from 'ava';
import type { Overview } from '../../../api/contract/admin/overview.ts';
import { callAdmin, createToken, testAdminToken } from '../../support/admin-api.ts';
import {
  ScriptedRefusal,
  startScriptedVendor,
  unstreamedChat,
  type ScriptedVendor,
} from '../../support/scripted-vendor.ts';
import { testWithOwnStore } from '../../support/own-stores.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { promptWorker, startStack, useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** The overview of the admin API. */

const catalogOf = (url: string): string => `
upstreams:
  priced: { kind: openai, baseUrl: '${url}/priced', apiKeys: [sk-vendor-key-0123456789] }
  other: { kind: openai, baseUrl: '${url}/other', apiKeys: [sk-vendor-key-9876543210], maxConcurrency: 7 }
  unpaid: { kind: openai, baseUrl: '${url}/unpaid', apiKeys: [sk-vendor-key-5555555555] }
models:
  - { id: good, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: priced, model: a, cost: { prompt: 1, completion: 1 } }] }
  - { id: bad, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: other, model: fails }] }
  - { id: unpaid, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: unpaid, model: a }] }
`;

let stack: TestStack;
let vendor: ScriptedVendor;
/** Whether the vendor takes the key of `unpaid`. */
let isPaid = false;

test.before(async () => {
  vendor = await startScriptedVendor((_, path) => {
    if (path.startsWith('/other')) return new ScriptedRefusal(500, { error: { message: 'out of order' } });
    if (path.startsWith('/unpaid') && !isPaid)
      return new ScriptedRefusal(401, { error: { message: 'no', code: 'account_deactivated' } });
    return unstreamedChat;
  });
  stack = await startStack({
    catalog: catalogOf(vendor.url),
    env: { ADMIN_TOKEN: testAdminToken },
    api: { statsStepMs: 1, trafficIntervalMs: 200 },
    workers: [promptWorker],
  });
});
test.after.always(async () => {
  await stack?.close();
  await vendor?.close();
});

const readOverview = async ({ url }: Pick<TestStack, 'url'>): Promise<Overview> => {
  const { status, body } = await callAdmin<Overview>(url, testAdminToken, 'GET', '/overview');
  if (status !== 200) throw new Error(`status ${status}`);
  return body;
};

test.serial(
  'the overview has traffic, queues, upstreams, processes and the ledger, with a token that only reads',
  async (t) => {
    const account = await stack.createAccount({ balance: '100' });
    const chat = (model: string) =>
      stack.post('/v1/chat/completions', account.apiKey, {
        model,
        messages: [{ role: 'user', content: 'hello' }],
        max_tokens: 10,
      });
    t.is((await chat('good')).status, 200);
    t.is((await chat('good')).status, 200);
    t.true((await chat('bad')).status >= 500);
    await callAdmin(stack.url, testAdminToken, 'POST', '/upstreams/other/drain', { model: 'bad' });
    const overview = await waitFor('the overview to have the requests', async () => {
      const read = await readOverview(stack);
      // The hour and the day are read one after the other.
      const counts = [read.traffic?.hour, read.traffic?.day].map((period) => period?.all.requests);
      const isAtRest = read.queues?.chat.running === 0 && read.upstreams?.[1]?.drained_models.length === 1;
      return counts.every((count) => count === 3) && isAtRest && read;
    });
    t.deepEqual(overview.unavailable, []);
    const { hour, day, hours } = overview.traffic!;
    for (const { all, most_requests: mostRequests, most_failed: mostFailed } of [hour, day]) {
      t.like(all, { requests: 3, succeeded: 2, failed: 1, rejected: 0, first_token_p95_seconds: null });
      t.true(all.cost > 0 && all.vendor_cost! > 0 && all.median_seconds! <= all.p95_seconds!);
      t.is(all.margin, Number((all.cost - all.vendor_cost!).toFixed(9)));
      t.deepEqual(
        mostRequests.map(({ model }) => model),
        ['good', 'bad'],
      );
      t.deepEqual(
        mostFailed.map(({ model }) => model),
        ['bad'],
      );
    }
    t.deepEqual(overview.refusing_models, [
      {
        model: 'bad',
        causes: [{ why: 'drained', upstream: 'other', reason: null, resource: 'upstream:other bad' }],
      },
    ]);
    t.is(hours.length, 24);
    t.like(hours.at(-1), { requests: 3, failed: 1, cost: hour.all.cost });
    t.like(overview.queues!.chat, { waiting: 0, running: 0, workers: 1 });
    t.like(overview.upstreams![0], {
      name: 'priced',
      drained: false,
      drained_models: [],
      keys: 1,
      refused_keys: 0,
    });
    t.like(overview.upstreams![1], {
      name: 'other',
      slots: 7,
      drained: false,
      drained_models: ['bad'],
      routes: 1,
    });
    for (const { count, builds, oldest_started_at: started } of Object.values(overview.processes!)) {
      t.is(count, 1);
      t.is(builds[0]?.count, 1);
      t.true(Date.parse(started!) <= Date.now());
    }
    t.false(overview.ledger!.is_behind);
    const token = await createToken(stack, 'reader', 'read');
    t.is((await callAdmin(stack.url, token, 'GET', '/overview')).status, 200);
  },
);

test.serial(
  'a refused key is a reason why its model serves nobody, and stays known until a call with it succeeds',
  async (t) => {
    const account = await stack.createAccount({ balance: '100' });
    const chat = () =>
      stack.post('/v1/chat/completions', account.apiKey, {
        model: 'unpaid',
        messages: [{ role: 'user', content: 'hello' }],
        max_tokens: 10,
      });
    const find = async () => {
      const { upstreams, refusing_models: models } = await readOverview(stack);
      return {
        refusal: upstreams?.find(({ name }) => name === 'unpaid')?.last_refusal ?? null,
        model: models?.find(({ model }) => model === 'unpaid'),
      };
    };
    t.true((await chat()).status >= 500);
    const { refusal, model } = await waitFor('the refusal', async () => {
      const found = await find();
      return found.model !== undefined && found;
    });
    t.like(refusal, { reason: 'refused with 401 (account_deactivated)' });
    t.like(model, { causes: [{ why: 'refused', upstream: 'unpaid', resource: null }] });
    const { body } = await callAdmin<{ data: object[] }>(
      stack.url,
      testAdminToken,
      'GET',
      '/upstreams?upstream=unpaid',
    );
    t.like(body.data[0], { last_refusal: refusal });
    // As if its cooldown had ended.
    const hash = redisKeys.keysOnCooldown('unpaid');
    const fields = Object.keys(await stack.redis.hgetall(hash));
    await stack.redis.hdel(hash, ...fields.filter((field) => !field.startsWith('refused ')));
    await waitFor('the end of the cooldown', async () => {
      const found = await find();
      return found.model === undefined && found.refusal !== null;
    });
    isPaid = true;
    t.is((await chat()).status, 200);
    await waitFor('the refusal to be forgotten', async () => (await find()).refusal === null);
  },
);

testWithOwnStore('Redis')(
  'while Redis is down, a session sees which parts of the overview are missing, and what is wrong',
  async (t) => {
    const own = await useStack(t, {
      env: { ADMIN_TOKEN: testAdminToken },
      api: { conditionIntervalMs: 20, statsStepMs: 1 },
      workers: [],
    });
    const token = await createToken(own, 'console', 'read');
    const { headers } = await callAdmin(own.url, token, 'POST', '/session');
    const [cookie = ''] = headers.get('set-cookie')!.split(';');
    const read = async (): Promise<Overview> => {
      const { status, body } = await callAdmin<Overview>(own.url, null, 'GET', '/overview', undefined, {
        cookie,
      });
      if (status !== 200) throw new Error(`status ${status}`);
      return body;
    };
    t.deepEqual((await read()).unavailable, []);
    await own.killRedis();
    // Parts that were read just before may still apply for a moment.
    const overview = await waitFor('the condition', async () => {
      const found = await read();
      return found.conditions.length > 0 && found.unavailable.length > 0 && found;
    });
    t.deepEqual(overview.unavailable, ['traffic', 'queues', 'upstreams', 'processes', 'ledger']);
    t.is(overview.traffic, null);
    t.like(overview.conditions[0], { name: 'redis_unreachable', about: [{ kind: 'redis', id: null }] });
  },
);
