import { testWithOwnStore } from '../support/own-stores.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] };

testWithOwnStore('Redis')(
  'while Redis is down, every request gets a 503 with retry-after, and afterwards requests are served without a restart',
  async (t) => {
    const stack = await useStack(t, { durableRedis: true });
    const account = await stack.createAccount();
    t.is((await stack.post('/v1/chat/completions', account.apiKey, chat)).status, 200);
    await stack.killRedis();
    await waitFor('the api to notice the outage', () => stack.redis.status !== 'ready');
    const responses = await Promise.all([
      stack.post('/v1/chat/completions', account.apiKey, chat),
      stack.post('/v1/chat/completions', account.apiKey, { ...chat, stream: true }),
      stack.post('/v1/embeddings', account.apiKey, { model: 'use-lite-en-512', input: 'cat' }),
      fetch(`${stack.url}/v1/users/profile`, { headers: { authorization: `Bearer ${account.apiKey}` } }),
    ]);
    for (const response of responses) {
      t.is(response.status, 503);
      t.regex(response.headers.get('retry-after') ?? '', /^\d+$/);
    }
    t.is((await fetch(`${stack.url}/v1/health`)).status, 503);
    t.is((await fetch(`${stack.url}/v1/models`)).status, 200);

    await stack.restartRedis();
    await waitFor(
      'a response',
      async () => (await stack.post('/v1/chat/completions', account.apiKey, chat)).status === 200,
    );
  },
);

testWithOwnStore('MongoDB')(
  'while MongoDB is down, known accounts are served, unknown keys get a 503, and the ledger catches up',
  async (t) => {
    const stack = await useStack(t);
    const account = await stack.createAccount();
    t.is((await stack.post('/v1/chat/completions', account.apiKey, chat)).status, 200);
    await stack.stopMongo();
    let spent = 0;
    for (let i = 0; i < 3; i++) {
      const response = await stack.post('/v1/chat/completions', account.apiKey, chat);
      t.is(response.status, 200);
      spent += ((await response.json()) as { usage: { cost_request: number } }).usage.cost_request;
    }
    const unknown = await stack.post('/v1/chat/completions', `mg-${'A'.repeat(43)}`, chat);
    t.is(unknown.status, 503);
    const health = (await (await fetch(`${stack.url}/v1/health`)).json()) as {
      status: string;
      checks: object;
    };
    t.is(health.status, 'degraded');
    t.like(health.checks, { redis: 'ok', mongodb: 'down' });

    await stack.restartMongo();
    const { balanceNano } = await stack.readAccount(account.id);
    t.true(spent > 0);
    await waitFor('the ledger to catch up', async () => {
      const stored = await stack.mongo.db.collection('accounts').findOne({ _id: account.id as never });
      return stored?.['balanceNano'] === balanceNano;
    });
    t.is(await stack.mongo.db.collection('request_logs').countDocuments({ accountId: account.id }), 4);
  },
);
