import test from 'ava';
import { hashSecret } from '../../shared/accounts/credentials.ts';
import { RefillCodeStore } from '../../shared/refills/refill-code-store.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** A MongoDB that is slow rather than away: it takes what it is asked, and does not answer for a long time. */

const body = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] };

const chat = (stack: TestStack, { apiKey }: TestAccount): Promise<Response> =>
  stack.post('/v1/chat/completions', apiKey, body);

const profile = (stack: TestStack, { apiKey }: TestAccount): Promise<Response> =>
  fetch(`${stack.url}/v1/users/profile`, { headers: { authorization: `Bearer ${apiKey}` } });

const asks = { 'a chat': chat, 'a look at the profile': profile };

const shortMs = 500;

/** A machine that is busy may take longer than that once; then it is asked again, as a caller would. */
const isServed = (stack: TestStack, account: TestAccount, ask: typeof chat): Promise<boolean> =>
  waitFor('an answer', async () => (await ask(stack, account)).status === 200);

for (const [what, ask] of Object.entries(asks)) {
  test.serial(
    `${what} under a key that only MongoDB knows is a 503 in time, and the next finds the key`,
    async (t) => {
      const stack = await useStack(t, { holdsMongo: true, api: { keyWaitMs: shortMs } });
      const account = await stack.createAccount();
      const key = redisKeys.apiKey(hashSecret(account.apiKey));
      stack.mongoProxy!.hold(hashSecret(account.apiKey));
      const answer = await ask(stack, account);
      t.is(answer.status, 503);
      t.regex(answer.headers.get('retry-after') ?? '', /^\d+$/);
      t.like(await answer.json(), { error: { code: 'service_unavailable' } });
      stack.mongoProxy!.release();
      await waitFor('the look-up to end', async () => (await stack.redis.get(key)) === account.id);
      t.true(await isServed(stack, account, ask));
      t.is(stack.mongoProxy!.countSent(hashSecret(account.apiKey)), 1);
    },
  );

  test.serial(
    `${what} of an account that only MongoDB knows is a 503 in time, and a later one finds the account`,
    async (t) => {
      const stack = await useStack(t, { holdsMongo: true, api: { accountWaitMs: shortMs } });
      const account = await stack.createAccount();
      t.true(await isServed(stack, account, ask));
      await stack.redis.del(redisKeys.account(account.id));
      stack.mongoProxy!.hold(account.id);
      const answer = await ask(stack, account);
      t.is(answer.status, 503);
      t.regex(answer.headers.get('retry-after') ?? '', /^\d+$/);
      stack.mongoProxy!.release();
      const isThere = async (): Promise<boolean> =>
        (await stack.redis.exists(redisKeys.account(account.id))) === 1;
      await waitFor('the account to be loaded', isThere);
      t.true(await isServed(stack, account, ask));
    },
  );
}

test.serial('callers of a MongoDB that hangs are told 503 in time, and served once it answers', async (t) => {
  const waits = { keyWaitMs: shortMs, accountWaitMs: shortMs, databaseWaitMs: shortMs };
  const stack = await useStack(t, { holdsMongo: true, api: waits });
  const [account, unknown] = [await stack.createAccount(), await stack.createAccount()];
  t.true(await isServed(stack, account, chat));
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
  // Paid requests of accounts that Redis holds need no MongoDB.
  t.is((await chat(stack, account)).status, 200);
  stack.mongoProxy!.release();
  for (const name of ['logs', 'stats', 'key'] as const)
    await waitFor(name, async () => (await calls[name]()).status === 200);
  // Who was told 503 does not know whether the code was credited; whoever sends it again is told, and it counts once.
  await waitFor('the code', async () => [200, 422].includes((await redeem()).status));
  const { totalAddedNano } = await stack.readAccount(account.id);
  t.is(totalAddedNano, 105_000_000_000n);
});

test.serial('callers who present one key at the same moment have it looked up once', async (t) => {
  const stack = await useStack(t, { holdsMongo: true, api: { keyWaitMs: 60_000 } });
  const account = await stack.createAccount();
  const hash = hashSecret(account.apiKey);
  stack.mongoProxy!.hold(hash);
  const answers = Promise.all(Array.from({ length: 30 }, () => profile(stack, account)));
  await waitFor('the look-up', () => stack.mongoProxy!.countSent(hash) > 0);
  stack.mongoProxy!.release();
  t.true((await answers).every(({ status }) => status === 200));
  t.is(stack.mongoProxy!.countSent(hash), 1);
});
