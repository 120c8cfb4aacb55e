import { randomUUID } from 'node:crypto';
import test from 'ava';
import { HotAccountStore } from '../../../shared/accounts/hot-account-store.ts';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { RefillCodeStore, type RefillCodeDocument } from '../../../shared/accounts/refill-code-store.ts';
import { SignupGrantStore } from '../../../shared/accounts/signup-grant-store.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { finishClaims } from '../../../workers/maintenance/finish-claims.ts';
import { readAdmin } from '../../support/admin.ts';
import { callAdmin, testAdminToken, type ListedPage } from '../../support/admin-api.ts';
import { uncounted, writeDeadCharges } from '../../support/dead-entries.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Refills that no worker could read: those of claims are credited again by themselves. */

interface Entry {
  readonly entry: string;
  readonly fields: readonly string[];
}
interface Listed extends ListedPage<Entry> {
  readonly sums: object;
}

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());
test.afterEach(async () => {
  for (const { entry } of (await list()).data) await discard(entry);
});

const call = async <T>(method: 'GET' | 'POST', path: string, body?: object): Promise<T> =>
  (await callAdmin<T>(stack.url, testAdminToken, method, path, body)).body;
const list = (query = '') => call<Listed>('GET', `/ledger/dead${query}`);
const discard = (entry: string, query = '') =>
  call<{ effects: object }>('POST', `/ledger/dead/${entry}/discard${query}`);
const readBalance = async (id: string): Promise<number> =>
  (await call<{ balance: number }>('GET', `/accounts/${id}`)).balance;
const countDead = (account: string) => stack.redis.xlen(redisKeys.ledgerDead(shardOf(account)));

/** Writes a refill of 50 roubles that workers cannot read, and waits until it is set aside. */
async function writeDeadRefill(account: string, id: string, event: string): Promise<void> {
  const before = await countDead(account);
  const money = ['amount', '50000000000', 'free', '0', 'event', event, 'ordinal', 'many'];
  const entry = ['kind', 'refill', 'account', account, 'id', id, ...money];
  await stack.redis.xadd(redisKeys.ledgerStream(shardOf(account)), '*', ...entry);
  await waitFor('the entry to be set aside', async () => (await countDead(account)) === before + 1);
}

/** Redeems a code, and damages the entry of that before a worker reads it. @returns the id of the refill */
async function redeemUnreadably(account: { id: string; apiKey: string }): Promise<string> {
  const { codes } = await call<{ codes: string[] }>('POST', '/codes', { balance: 50, count: 1 });
  const stream = redisKeys.ledgerStream(shardOf(account.id));
  await waitFor('the ledger to be read', async () => (await stack.redis.xlen(stream)) === 0);
  await stack.stopWorkers();
  await stack.post('/v1/users/redeem', account.apiKey, { code: codes[0] });
  const [[id, fields]] = (await stack.redis.xrange(stream, '-', '+')) as [[string, string[]]];
  const damaged = fields.with(fields.indexOf('ordinal') + 1, 'many').with(fields.indexOf('event') + 1, '{');
  await stack.redis.xdel(stream, id);
  await stack.redis.xadd(stream, '*', ...damaged);
  await stack.startWorker();
  await waitFor('the entry to be set aside', async () => (await countDead(account.id)) === 1);
  return fields[fields.indexOf('id') + 1]!;
}

/** Credits the claim of a refill as workers do a week later. */
async function finishClaimLater(account: string, refillId: string): Promise<void> {
  const { redis, mongo, log, config } = stack;
  await redis.del(redisKeys.refill(account, refillId));
  await mongo.db
    .collection<RefillCodeDocument>('refill_codes')
    .updateOne({ 'redeemed.refillId': refillId }, { $set: { 'redeemed.at': new Date(0) } });
  const ledger = new LedgerStore(mongo.db);
  const hotAccounts = new HotAccountStore(redis, new AccountStore(mongo.db, config), ledger);
  await finishClaims({ redis, hotAccounts, codes: new RefillCodeStore(mongo.db), ledger, log });
}

const nothing = { uncharged: 0, uncredited: 0, free_requests: 0 };
const noSums = { entries: 1, uncounted: 0, credited_again: 1, unknown: 0, charges: 0, refills: 0 };

test.serial('the refill of a code is credited again by itself, and its entry says so', async (t) => {
  const account = await stack.createAccount({ balance: '1' });
  const refillId = await redeemUnreadably(account);
  const { data, sums } = await list();
  t.like(data, [
    {
      kind: 'refill',
      source: 'code',
      counted: false,
      is_credited_again: true,
      amount: 50,
      account: account.id,
    },
  ]);
  t.deepEqual(sums, noSums);
  const [{ entry }] = data as [Entry];
  const { effects } = await discard(entry, '?dry_run=true');
  t.like(effects, { kind: 'refill', counted: false, is_credited_again: true, ...nothing });
  t.like(await readAdmin(stack.env, 'ledger', 'dead'), [{ entry, is_credited_again: true, source: 'code' }]);
  await waitFor('the credit to be taken back', async () => (await readBalance(account.id)) === 1);

  await finishClaimLater(account.id, refillId);
  await waitFor('the claim to be credited', async () => (await readBalance(account.id)) === 51);
  const rows = stack.mongo.db.collection<{ _id: string }>('refill_codes');
  await waitFor('its row', async () => {
    await finishClaimLater(account.id, 'no refill');
    return (await rows.findOne({ 'redeemed.refillId': refillId, 'redeemed.settled': true })) !== null;
  });
  // It was credited: nobody is asked to credit it now either.
  const later = await list();
  t.like(later.data, [{ entry, source: 'code', is_credited_again: true }]);
  t.deepEqual(later.sums, noSums);
  t.is(await readBalance(account.id), 51);
});

test.serial('a sign-up grant is credited again, too, but the credit of an operator is not', async (t) => {
  const { id } = await stack.createAccount({ balance: '1' });
  const userId = randomUUID();
  const grants = new SignupGrantStore(stack.mongo.db);
  await grants.claim(userId, id, { balanceNano: 50_000_000_000n, freeRequests: 0 });
  await writeDeadRefill(id, `signup-${userId}`, '{');
  const creditId = randomUUID();
  await writeDeadRefill(id, creditId, JSON.stringify(createRefillEvent(creditId, id, 'admin')));
  await writeDeadCharges(stack, id, [{ ...uncounted, id: `signup-${userId}` }]);
  const { data, sums } = await list();
  t.like(data, [
    { kind: 'charge', source: null, is_credited_again: false },
    { kind: 'refill', source: 'operator', is_credited_again: false },
    { kind: 'refill', source: 'signup', is_credited_again: true },
  ]);
  t.deepEqual(sums, { entries: 3, uncounted: 2, credited_again: 1, unknown: 0, charges: 0.42, refills: 50 });
  const { effects } = await discard(data[1]!.entry, '?dry_run=true');
  t.like(effects, { is_credited_again: false, uncredited: 50 });
});

test.serial('a discard keeps the fields of an entry in the audit log, cut and without secrets', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const event = `{"cost":"lost","details":"${apiKey} 7KQM-2WXY-9ABC-DEFG-HJKM ${'long '.repeat(20_000)}`;
  await writeDeadCharges(stack, id, [{ cost: '1e9', event, total: 'the last' }]);
  const [{ entry, fields }] = (await list()).data as [Entry];
  const text = fields.join(' ');
  t.true(text.startsWith(`kind charge account ${id} id `), text.slice(0, 100));
  t.regex(text, /cost 1e9 .* event \{"cost":"lost","details":"mga?-… … long .*… total the last$/);
  t.true(text.length > 7_500 && text.length < 8_500, String(text.length));
  t.false(text.includes(apiKey));
  await discard(entry);
  const log = await call<ListedPage<object>>('GET', `/audit?resource=ledger:${entry}`);
  t.like(log.data, [{ action: 'ledger.discard', outcome: 'done', before: { amount: null, fields } }]);
});
