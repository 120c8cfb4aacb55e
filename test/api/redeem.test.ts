import test from 'ava';
import type { AccountDocument } from '../../shared/accounts/account-store.ts';
import { RefillCodeStore, type NewRefillCode } from '../../shared/accounts/refill-code-store.ts';
import { maxUnknownCodes } from '../../api/endpoints/redeem-code.ts';
import type { RedeemResponse } from '../../api/contract/users.ts';
import { formatRub, parseRub } from '../../shared/encoding/money.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { callApi, type ErrorBody } from '../support/call-api.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { startStack, useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Refill codes can be redeemed once, and guessing codes gets an account banned. */

let stack: TestStack;
let codes: RefillCodeStore;

test.before(async () => {
  stack = await startStack();
  codes = new RefillCodeStore(stack.mongo.db);
});
test.after.always(() => stack.close());

const redeem = <T = ErrorBody>(apiKey: string, code: unknown, url = stack.url) =>
  callApi<T>(url, apiKey, 'POST', '/users/redeem', { code });

async function createCode(worth: Partial<NewRefillCode> & { balance?: string } = {}): Promise<string> {
  const { balance = '10', ...more } = worth;
  const code = { balanceNano: parseRub(balance)!, freeRequests: 0, expiresAt: null, ...more };
  return (await codes.create(1, code))[0]!;
}

const unknownCode = (i: number): string => `2222-2222-2222-2222-222${'23456789ABCDEFGHJKMNPQRSTUVWXYZ'[i]}`;

test('a code adds its money and free requests, and the response shows both and the new profile', async (t) => {
  const { id, apiKey } = await stack.createAccount({ balance: '1.5', freeRequests: 2 });
  const code = await createCode({ balance: '50.000000001', freeRequests: 3 });
  const { status, body } = await redeem<RedeemResponse>(apiKey, code);
  t.is(status, 200);
  t.deepEqual(body, {
    id,
    user_type: 'default',
    balance: 51.500000001,
    total_balance_added: 51.500000001,
    free_requests: 5,
    add_balance: 50.000000001,
    add_free_requests: 3,
  });
  const messages = [{ role: 'user', content: 'hi' }];
  const chat = await stack.post('/v1/chat/completions', apiKey, { model: 'demo-echo', messages });
  await chat.text();
  const again = await redeem<RedeemResponse>(apiKey, await createCode());
  t.regex(again.body.last_used_at!, /^\d{4}-.*Z$/);
  await waitFor('the ledger to write the credit to MongoDB', async () => {
    const stored = await stack.mongo.db.collection<AccountDocument>('accounts').findOne({ _id: id });
    return stored?.totalAddedNano === parseRub('61.500000001');
  });
});

test('a code is accepted in any case, with or without dashes', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const type of [
    (code: string) => code.toLowerCase(),
    (code: string) => code.replaceAll('-', ''),
    (code: string) => ` ${code.replaceAll('-', ' ')} `,
  ]) {
    t.is((await redeem(apiKey, type(await createCode()))).status, 200);
  }
});

test('of 100 concurrent redemptions of a code by one account, one succeeds', async (t) => {
  const { id, apiKey } = await stack.createAccount({ balance: '1' });
  const code = await createCode();
  const results = await Promise.all(Array.from({ length: 100 }, () => redeem(apiKey, code)));
  t.is(results.filter(({ status }) => status === 200).length, 1);
  const failed = results.filter(({ status }) => status !== 200);
  t.true(failed.every(({ status, body }) => status === 422 && body.error.code === 'invalid_code'));
  t.is(formatRub((await stack.readAccount(id)).balanceNano), '11');
});

test('of 100 concurrent redemptions of a code by ten accounts, one succeeds', async (t) => {
  const accounts = await Promise.all(Array.from({ length: 10 }, () => stack.createAccount({ balance: '1' })));
  const code = await createCode();
  const results = await Promise.all(
    Array.from({ length: 100 }, (_, i) => redeem(accounts[i % 10]!.apiKey, code)),
  );
  t.is(results.filter(({ status }) => status === 200).length, 1);
  const balances = await Promise.all(
    accounts.map(async ({ id }) => formatRub((await stack.readAccount(id)).balanceNano)),
  );
  t.deepEqual(balances.toSorted(), ['1', '1', '1', '1', '1', '1', '1', '1', '1', '11']);
});

test('a used, expired or revoked code is reported as such, and does not count as a guess', async (t) => {
  const [owner, other] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  const used = await createCode();
  const expired = await createCode({ expiresAt: new Date(Date.now() - 1) });
  const revoked = await createCode();
  await codes.revoke(revoked);
  t.is((await redeem(owner.apiKey, used)).status, 200);
  for (let i = 0; i < maxUnknownCodes; i++) {
    for (const [code, message] of [
      [used, /already been used/],
      [expired, /expired/],
      [revoked, /revoked/],
    ] as const) {
      const { status, body } = await redeem(other.apiKey, code);
      t.is(status, 422);
      t.like(body, { error: { code: 'invalid_code', param: 'code' }, detail: [{ loc: ['body', 'code'] }] });
      t.regex(body.error.message, message);
    }
  }
  const twice = await redeem(owner.apiKey, used);
  t.regex(twice.body.error.message, /This account has already redeemed/);
  t.is((await redeem(other.apiKey, await createCode())).status, 200);
});

test('a code in Cyrillic letters is redeemed, and what cannot be a code does not count as a guess', async (t) => {
  const { id, apiKey } = await stack.createAccount({ balance: '1' });
  for (let i = 0; i <= maxUnknownCodes; i++) {
    const { status, body } = await redeem(apiKey, `ABCD-EFGH-${i}`);
    t.is(status, 422);
    t.is(body.error.code, 'invalid_code');
    t.regex(body.error.message, /consists of 20 letters and digits/);
  }
  const code = await createCode();
  const cyrillic = code.replaceAll(
    /[ABEKMHPCTYX]/g,
    (letter) => 'АВЕКМНРСТУХ'['ABEKMHPCTYX'.indexOf(letter)]!,
  );
  t.is((await redeem(apiKey, cyrillic.toLowerCase())).status, 200);
  t.is(formatRub((await stack.readAccount(id)).balanceNano), '11');
});

test('the tenth unknown code within an hour bans the account permanently, and no earlier one does', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  for (let i = 1; i < maxUnknownCodes; i++) {
    const { status, body } = await redeem(apiKey, unknownCode(i));
    t.is(status, 422);
    t.is(body.error.code, 'invalid_code');
  }
  t.is((await redeem(apiKey, await createCode())).status, 200);
  const tenth = await redeem(apiKey, unknownCode(10));
  t.is(tenth.status, 403);
  t.is(tenth.body.error.code, 'account_banned');
  for (const path of ['/users/profile', '/users/stats', '/users/request_logs', '/users/refill_logs']) {
    t.like(await callApi(stack.url, apiKey, 'GET', path), { status: 403 }, path);
  }
  t.like(await callApi(stack.url, apiKey, 'PUT', '/users/regenerate_api_key'), { status: 403 });
  const unused = await createCode();
  t.is((await redeem(apiKey, unused)).status, 403);
  t.is((await codes.find(unused))?.redeemed, null);
  const body = { model: 'demo-echo', messages: [{ role: 'user', content: 'hi' }] };
  t.is((await stack.post('/v1/chat/completions', apiKey, body)).status, 403);
  const stored = await stack.mongo.db.collection<AccountDocument>('accounts').findOne({ _id: id });
  t.like(stored, { banned: true, banReason: 'guessed refill codes' });
});

test('the limit of unknown codes applies per account, within an hour that starts with the first guess', async (t) => {
  const [guesser, other] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  const key = redisKeys.unknownCodes(guesser.id);
  await redeem(guesser.apiKey, unknownCode(1));
  const ttl = await stack.redis.ttl(key);
  t.true(ttl > 3_000 && ttl <= 3_600);
  // Simulates that half of the hour has passed.
  await stack.redis.expire(key, 1_800);
  for (let i = 2; i < maxUnknownCodes; i++) await redeem(guesser.apiKey, unknownCode(i));
  t.true((await stack.redis.ttl(key)) <= 1_800);
  t.is((await redeem(other.apiKey, unknownCode(1))).status, 422);
  // Simulates that the hour has passed.
  await stack.redis.del(key);
  t.is((await redeem(guesser.apiKey, unknownCode(1))).status, 422);
});

test('the tenth of many concurrent guesses and all later ones are rejected because the account is banned', async (t) => {
  const { apiKey } = await stack.createAccount();
  const results = await Promise.all(Array.from({ length: 30 }, (_, i) => redeem(apiKey, unknownCode(i))));
  t.is(results.filter(({ status }) => status === 422).length, maxUnknownCodes - 1);
  t.is(results.filter(({ status }) => status === 403).length, 30 - maxUnknownCodes + 1);
});

test('a code that is not a string, empty, or longer than 256 characters is a 422 and does not count as a guess', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  for (const code of [undefined, null, 7, '', 'A'.repeat(257)]) {
    const { status, body } = await redeem(apiKey, code);
    t.is(status, 422);
    t.is(body.error.code, 'validation_failed');
  }
  t.is(await stack.redis.exists(redisKeys.unknownCodes(id)), 0);
  t.is((await redeem(apiKey, 'A'.repeat(256))).body.error.code, 'invalid_code');
  t.is(await stack.redis.exists(redisKeys.unknownCodes(id)), 0);
  await redeem(apiKey, unknownCode(0));
  t.is(await stack.redis.get(redisKeys.unknownCodes(id)), '1');
});

test('a code that would raise the balance above its cap is rejected and stays unused', async (t) => {
  const { id, apiKey } = await stack.createAccount({ balance: '8999995' });
  const code = await createCode({ balance: '10' });
  const { status, body } = await redeem(apiKey, code);
  t.is(status, 422);
  t.is(body.error.code, 'validation_failed');
  t.regex(body.error.message, /9 000 000/);
  t.is((await codes.find(code))?.redeemed, null);
  const other = await stack.createAccount();
  t.is((await redeem(other.apiKey, code)).status, 200);
  t.is(formatRub((await stack.readAccount(id)).balanceNano), '8999995');
});

test('if two codes together would exceed the balance cap, one is credited and the other stays unused', async (t) => {
  const { id, apiKey } = await stack.createAccount({ balance: '1' });
  const both = await Promise.all([createCode({ balance: '5000000' }), createCode({ balance: '5000000' })]);
  const results = await Promise.all(both.map((code) => redeem(apiKey, code)));
  t.deepEqual(
    results.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 422],
  );
  t.is(formatRub((await stack.readAccount(id)).balanceNano), '5000001');
  const unused = both[results.findIndex(({ status }) => status === 422)]!;
  t.is((await codes.find(unused))?.redeemed, null);
});

testWithOwnStore('MongoDB')(
  'while MongoDB is down, redeeming a code is a 503, and a guess is not counted',
  async (t) => {
    const ownStack = await useStack(t);
    const { id, apiKey } = await ownStack.createAccount();
    t.is((await callApi(ownStack.url, apiKey, 'GET', '/users/profile')).status, 200);
    await ownStack.stopMongo();
    for (let i = 0; i < 2; i++) {
      const { status, body } = await redeem(apiKey, unknownCode(i), ownStack.url);
      t.is(status, 503);
      t.is(body.error.code, 'service_unavailable');
    }
    t.is(await ownStack.redis.exists(redisKeys.unknownCodes(id)), 0);
    for (const path of ['/users/stats', '/users/request_logs', '/users/refill_logs']) {
      t.like(await callApi(ownStack.url, apiKey, 'GET', path), { status: 503 }, path);
    }
  },
);
