import test from 'ava';
import { hashSecret } from '../../shared/accounts/credentials.ts';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** A MongoDB that is slow, not down: it accepts commands, but does not reply for a long time. */

const body = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] };

const chat = (stack: TestStack, { apiKey }: TestAccount): Promise<Response> =>
  stack.post('/v1/chat/completions', apiKey, body);

const profile = (stack: TestStack, { apiKey }: TestAccount): Promise<Response> =>
  fetch(`${stack.url}/v1/users/profile`, { headers: { authorization: `Bearer ${apiKey}` } });

const calls = { 'a chat': chat, 'a profile read': profile };

const shortMs = 500;

/** A busy machine may exceed the time limit once; then the call is retried, as a caller would do. */
const waitUntilServed = (stack: TestStack, account: TestAccount, call: typeof chat): Promise<boolean> =>
  waitFor('a response', async () => (await call(stack, account)).status === 200);

for (const [what, call] of Object.entries(calls)) {
  test.serial(
    `${what} with a key that is only in MongoDB gets a 503 within its time limit, and a retry finds the key`,
    async (t) => {
      const stack = await useStack(t, { holdsMongo: true, api: { keyWaitMs: shortMs } });
      const account = await stack.createAccount();
      const key = redisKeys.apiKey(hashSecret(account.apiKey));
      stack.mongoProxy!.hold(hashSecret(account.apiKey));
      const response = await call(stack, account);
      t.is(response.status, 503);
      t.regex(response.headers.get('retry-after') ?? '', /^\d+$/);
      t.like(await response.json(), { error: { code: 'service_unavailable' } });
      stack.mongoProxy!.release();
      await waitFor('the lookup to end', async () => (await stack.redis.get(key)) === account.id);
      t.true(await waitUntilServed(stack, account, call));
      t.is(stack.mongoProxy!.countSent(hashSecret(account.apiKey)), 1);
    },
  );

  test.serial(
    `${what} of an account that is only in MongoDB gets a 503 within its time limit, and a retry finds the account`,
    async (t) => {
      const stack = await useStack(t, { holdsMongo: true, api: { accountWaitMs: shortMs } });
      const account = await stack.createAccount();
      t.true(await waitUntilServed(stack, account, call));
      await stack.redis.del(redisKeys.account(account.id));
      stack.mongoProxy!.hold(account.id);
      const response = await call(stack, account);
      t.is(response.status, 503);
      t.regex(response.headers.get('retry-after') ?? '', /^\d+$/);
      stack.mongoProxy!.release();
      const isLoaded = async (): Promise<boolean> =>
        (await stack.redis.exists(redisKeys.account(account.id))) === 1;
      await waitFor('the account to be loaded', isLoaded);
      t.true(await waitUntilServed(stack, account, call));
    },
  );
}

test.serial(
  'while MongoDB hangs, callers get a 503 within their time limit, and they are served once MongoDB responds',
  async (t) => {
    const waits = { keyWaitMs: shortMs, accountWaitMs: shortMs, databaseWaitMs: shortMs };
    const stack = await useStack(t, { holdsMongo: true, api: waits });
    const [account, unknown] = [await stack.createAccount(), await stack.createAccount()];
    t.true(await waitUntilServed(stack, account, chat));
    const [code] = await new RefillCodeStore(stack.mongo.db).create(1, {
      balanceNano: 5_000_000_000n,
      freeRequests: 0,
      expiresAt: null,
    });
    const get = (path: string, { apiKey }: TestAccount): Promise<Response> =>
      fetch(`${stack.url}${path}`, { headers: { authorization: `Bearer ${apiKey}` } });
    const redeem = (): Promise<Response> => stack.post('/v1/users/redeem', account.apiKey, { code });
    const calls = {
      logs: () => get('/v1/users/request_logs', account),
      stats: () => get('/v1/users/stats', account),
      key: () => get('/v1/users/profile', unknown),
      redeem,
    };
    stack.mongoProxy!.hold();
    for (const [name, call] of Object.entries(calls)) {
      const response = await call();
      t.is(response.status, 503, name);
      t.regex(response.headers.get('retry-after') ?? '', /^\d+$/, name);
      t.like(await response.json(), { error: { code: 'service_unavailable' } }, name);
    }
    // Paid requests of accounts in Redis do not need MongoDB.
    t.is((await chat(stack, account)).status, 200);
    stack.mongoProxy!.release();
    for (const name of ['logs', 'stats', 'key'] as const)
      await waitFor(name, async () => (await calls[name]()).status === 200);
    // After a 503 the caller does not know whether the code was credited. A retry reports the result, and does not credit
    // the code again.
    await waitFor('the code', async () => [200, 422].includes((await redeem()).status));
    const { totalAddedNano } = await stack.readAccount(account.id);
    t.is(totalAddedNano, 105_000_000_000n);
  },
);

test.serial('a key presented by several callers simultaneously is looked up once', async (t) => {
  const stack = await useStack(t, { holdsMongo: true, api: { keyWaitMs: 60_000 } });
  const account = await stack.createAccount();
  const hash = hashSecret(account.apiKey);
  stack.mongoProxy!.hold(hash);
  const responses = Promise.all(Array.from({ length: 30 }, () => profile(stack, account)));
  await waitFor('the lookup', () => stack.mongoProxy!.countSent(hash) > 0);
  stack.mongoProxy!.release();
  t.true((await responses).every(({ status }) => status === 200));
  t.is(stack.mongoProxy!.countSent(hash), 1);
});
