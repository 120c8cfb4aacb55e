import { randomUUID } from 'node:crypto';
import test from 'ava';
import { startApi } from '../../../api/server.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { readAdmin } from '../../support/admin.ts';
import { callAdmin, codeOf, testAdminToken, type ListedPage } from '../../support/admin-api.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { callApi } from '../../support/call-api.ts';
import { apiOptions, startStack, useStack, type TestAccount, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Credits through the admin API happen once per key, for ever, whatever fails in between. */

const env = { ADMIN_TOKEN: testAdminToken };
let stack: TestStack;

test.before(async () => {
  stack = await startStack({ env });
});
test.after.always(() => stack?.close());

interface Credit {
  readonly id: string;
  readonly amount: number;
  readonly free_requests: number;
  readonly note: string | null;
}

const credit = (url: string, id: string, key: string | null, body: object) =>
  callAdmin<Credit>(
    url,
    testAdminToken,
    'POST',
    `/accounts/${id}/credits`,
    body,
    key === null ? {} : { 'idempotency-key': key },
  );

const balanceOf = async (one: TestStack, id: string): Promise<bigint> =>
  (await one.readAccount(id)).balanceNano;

const waitForLedger = (one: TestStack, id: string) =>
  waitFor(
    'the ledger to be written',
    async () => (await one.redis.xlen(redisKeys.ledgerStream(shardOf(id)))) === 0,
  );

const readRefills = async ({ apiKey }: TestAccount) =>
  (await callApi<{ total_count: number; items: object[] }>(stack.url, apiKey, 'GET', '/users/refill_logs'))
    .body;

test('a credit needs a key, adds exactly what it says, and is in the owner’s history with its note', async (t) => {
  const account = await stack.createAccount({ balance: '1' });
  const refused = await credit(stack.url, account.id, null, { amount: 5 });
  t.is(refused.status, 422);
  t.is(codeOf(refused), 'validation_failed');
  const made = await credit(stack.url, account.id, 'invoice-17', {
    amount: 5.000000001,
    free_requests: 2,
    note: 'invoice 17',
  });
  t.like(made, {
    status: 200,
    body: { account: account.id, amount: 5.000000001, free_requests: 2, note: 'invoice 17' },
  });
  t.is(made.headers.get('idempotent-replayed'), null);
  t.is(await balanceOf(stack, account.id), 6_000_000_001n);
  t.like((await readRefills(account)).items[0], {
    refill_code_redeemed: '',
    balance_added: '5.000000001',
    free_requests_added: 2,
    source: 'operator',
    note: 'invoice 17',
  });
});

test('the same key and amount returns the same credit, before and after it is in MongoDB; another amount is a conflict', async (t) => {
  const { id } = await stack.createAccount({ balance: '0' });
  const first = await credit(stack.url, id, 'order 1', { amount: 7, note: 'one' });
  const expectReplay = async () => {
    const again = await credit(stack.url, id, 'order 1', { amount: 7, note: 'another note' });
    t.is(again.status, 200);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    t.deepEqual(again.body, first.body);
    for (const other of [{ amount: 8 }, { amount: 7, free_requests: 1 }]) {
      const conflict = await credit(stack.url, id, 'order 1', other);
      t.like({ ...conflict, code: codeOf(conflict) }, { status: 409, code: 'idempotency_conflict' });
      t.is(conflict.headers.get('x-should-retry'), 'false');
    }
    t.is(await balanceOf(stack, id), 7_000_000_000n);
  };
  await expectReplay();
  await waitForLedger(stack, id);
  // Redis forgets it after a week.
  await stack.redis.del(redisKeys.refill(id, first.body.id));
  await expectReplay();
});

test('of repeated and conflicting credits, at once and later, the audit log has one that was made, and each conflict', async (t) => {
  const { id } = await stack.createAccount({ balance: '0' });
  await Promise.all(Array.from({ length: 10 }, () => credit(stack.url, id, 'audited', { amount: 3 })));
  await credit(stack.url, id, 'audited', { amount: 3 });
  for (let i = 0; i < 2; i++) t.is((await credit(stack.url, id, 'audited', { amount: 4 })).status, 409);
  const { body } = await callAdmin<ListedPage<{ outcome: string; after: { amount?: number } | null }>>(
    stack.url,
    testAdminToken,
    'GET',
    `/audit?resource=account:${id}`,
  );
  const done = body.data.filter(({ outcome }) => outcome === 'done');
  t.is(done.filter(({ after }) => after?.amount === 3).length, 1);
  for (const { after } of done) if (after?.amount !== 3) t.like(after, { replayed: true });
  t.is(body.data.filter(({ outcome }) => outcome === 'failed').length, 2);
});

test('keys belong to their account', async (t) => {
  const [one, other] = [
    await stack.createAccount({ balance: '0' }),
    await stack.createAccount({ balance: '0' }),
  ];
  const ids = await Promise.all(
    [one, other].map(async ({ id }) => (await credit(stack.url, id, 'the same', { amount: 1 })).body.id),
  );
  t.not(ids[0], ids[1]);
  for (const { id } of [one, other]) t.is(await balanceOf(stack, id), 1_000_000_000n);
});

test('of many credits with one key through two api processes at once, one is made, and all get it', async (t) => {
  const other = await startApi(stack.config, stack.env, stack.log, apiOptions);
  t.teardown(() => other.stop());
  const { id } = await stack.createAccount({ balance: '0' });
  const responses = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      credit(i % 2 === 0 ? stack.url : other.url, id, 'race', { amount: 3, note: `caller ${i}` }),
    ),
  );
  t.is(await balanceOf(stack, id), 3_000_000_000n);
  t.true(responses.every(({ status }) => status === 200));
  t.is(new Set(responses.map(({ body }) => JSON.stringify(body))).size, 1);
  t.is(responses.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1);
});

test('of different amounts with one key at once, one is made, and the others are conflicts', async (t) => {
  const { id } = await stack.createAccount({ balance: '0' });
  const responses = await Promise.all(
    [1, 2, 3, 4].map((amount) => credit(stack.url, id, 'different', { amount })),
  );
  const made = responses.filter(({ status }) => status === 200);
  t.is(made.length, 1);
  t.is(responses.filter(({ status }) => status === 409).length, 3);
  t.is(await balanceOf(stack, id), BigInt(made[0]!.body.amount) * 1_000_000_000n);
});

test('a correction takes no more than is available, and its repetition returns what it took', async (t) => {
  const account = await stack.createAccount({ balance: '2' });
  const taken = await credit(stack.url, account.id, 'correction', { amount: -5 });
  t.like(taken, { status: 200, body: { amount: -2 } });
  const again = await credit(stack.url, account.id, 'correction', { amount: -5 });
  t.deepEqual(again.body, taken.body);
  t.is(codeOf(await credit(stack.url, account.id, 'correction', { amount: -2 })), 'idempotency_conflict');
  t.is(await balanceOf(stack, account.id), 0n);
  t.like((await readRefills(account)).items[0], { balance_added: '-2', source: 'operator' });
});

test('amounts that are not exact, too large or nothing are refused, and so are unknown accounts and bad keys', async (t) => {
  const { id } = await stack.createAccount({ balance: '0' });
  for (const amount of [1e-10, 10_000_000, -10_000_000, 0, '5', null])
    t.is((await credit(stack.url, id, 'bad', { amount })).status, 422, String(amount));
  t.is((await credit(stack.url, id, 'x'.repeat(256), { amount: 1 })).status, 422);
  t.is((await credit(stack.url, randomUUID(), 'unknown', { amount: 1 })).status, 404);
  t.is(await balanceOf(stack, id), 0n);
  // The balance would exceed its maximum.
  t.is((await credit(stack.url, id, 'most', { amount: 9_000_000 })).status, 200);
  t.is((await credit(stack.url, id, 'beyond', { amount: 1 })).status, 422);
});

test('after Redis has lost its data, credits that MongoDB has are not made again, and the ledger agrees', async (t) => {
  const own = await useStack(t, { env });
  const { id } = await own.createAccount({ balance: '0' });
  const first = await credit(own.url, id, 'kept', { amount: 4 });
  t.is(first.status, 200);
  await waitForLedger(own, id);
  await flushAll(own.redis);
  const again = await credit(own.url, id, 'kept', { amount: 4 });
  t.like(again, { status: 200, body: first.body });
  t.is(again.headers.get('idempotent-replayed'), 'true');
  await credit(own.url, id, 'new', { amount: 1 });
  t.is(await balanceOf(own, id), 5_000_000_000n);
  await waitForLedger(own, id);
  const { differences } = await readAdmin<{ differences: object[] }>(own.env, 'ledger', 'verify');
  t.deepEqual(differences, []);
});

test('the balance that an account begins with is its first refill, and codes follow it', async (t) => {
  const created = await callAdmin<{ id: string; api_key: string }>(
    stack.url,
    testAdminToken,
    'POST',
    '/accounts',
    {
      name: 'Anna',
      balance: 10,
    },
  );
  t.is(created.status, 201);
  const account = { id: created.body.id, apiKey: created.body.api_key };
  const { body } = await callAdmin<{ codes: string[] }>(stack.url, testAdminToken, 'POST', '/codes', {
    balance: 2,
  });
  t.is(
    (await callApi(stack.url, account.apiKey, 'POST', '/users/redeem', { code: body.codes[0] })).status,
    200,
  );
  const { total_count, items } = await readRefills(account);
  t.is(total_count, 2);
  t.like(items[0], { refill_code_redeemed: body.codes[0], balance_added: '2', source: 'code' });
  t.like(items[1], { refill_code_redeemed: '', balance_added: '10', source: 'operator' });
});

test('the command makes a credit once per key, too, and the log says who made which', async (t) => {
  const { id } = await stack.createAccount({ balance: '0' });
  const run = () =>
    readAdmin<{ balance: number }>(
      stack.env,
      'account',
      'credit',
      id,
      '--balance',
      '5',
      '--key',
      'k',
      '--note',
      'n',
    );
  t.is((await run()).balance, 5);
  t.is((await run()).balance, 5);
  t.is((await credit(stack.url, id, 'k', { amount: 5 })).headers.get('idempotent-replayed'), 'true');
  await credit(stack.url, id, 'other', { amount: 1 });
  const { body } = await callAdmin<ListedPage<{ token: string; os_user: string | null; after: object }>>(
    stack.url,
    testAdminToken,
    'GET',
    `/audit?resource=account:${id}`,
  );
  t.is(body.data.length, 2);
  t.like(body.data[0], { token: 'ADMIN_TOKEN', os_user: null, after: { amount: 1, balance: 6 } });
  t.like(body.data[1], { token: 'command', after: { amount: 5, balance: 5, note: 'n' } });
  t.truthy(body.data[1]!.os_user);
});
