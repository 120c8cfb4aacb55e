import test from 'ava';
import { translateOperatorReason } from '../../../shared/admin/operator-reasons.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { readAdmin } from '../../support/admin.ts';
import {
  callAdmin,
  codeOf,
  createToken,
  readAllPages,
  testAdminToken,
  type ListedPage,
} from '../../support/admin-api.ts';
import { counted, uncounted, writeCharge, writeDeadCharges } from '../../support/dead-entries.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Ledger entries that no worker could read, in the admin API. */

interface Entry {
  readonly entry: string;
  readonly account: string;
  readonly account_name: string | null;
  readonly request_id: string;
  readonly counted: boolean;
  readonly reason: string;
  readonly amount: number | null;
}
interface Listed extends ListedPage<Entry> {
  readonly sums: object | null;
}

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());
test.afterEach(async () => {
  for (const { entry } of await listAll()) await discard(entry);
});

const list = async (query = '', token = testAdminToken): Promise<Listed> =>
  (await callAdmin<Listed>(stack.url, token, 'GET', `/ledger/dead${query}`)).body;
const listAll = (limit = 100): Promise<Entry[]> =>
  readAllPages<Entry>(stack.url, testAdminToken, '/ledger/dead', limit);
const discard = <T = Entry>(entry: string, query = '', token = testAdminToken) =>
  callAdmin<T>(stack.url, token, 'POST', `/ledger/dead/${entry}/discard${query}`);

test.serial(
  'entries that could not be read are listed with what is wrong and the money in them',
  async (t) => {
    const { body: account } = await callAdmin<{ id: string }>(
      stack.url,
      testAdminToken,
      'POST',
      '/accounts',
      {
        name: 'Anna',
        balance: 5,
      },
    );
    await writeDeadCharges(stack, account.id, [
      uncounted,
      counted,
      { cost: 'seven' },
      { ...uncounted, cost: '1' },
    ]);
    const reader = await createToken(stack, 'ledger-reader', 'read');
    const { data, sums } = await list('', reader);
    t.like(data, [
      { amount: 0.000000001, counted: false },
      { amount: null, counted: false, reason: 'cost is "seven"', kind: 'charge' },
      { amount: 0.42, counted: true, reason: 'its event has version 9' },
      {
        amount: 0.42,
        counted: false,
        reason: 'ordinal is "many"',
        account: account.id,
        account_name: 'Anna',
      },
    ]);
    t.deepEqual(sums, {
      entries: 4,
      uncounted: 3,
      credited_again: 0,
      unknown: 1,
      charges: 0.420000001,
      refills: 0,
    });
    t.deepEqual(await readAllPages(stack.url, reader, '/ledger/dead', 1), data);
    const first = data.at(0)!.entry;
    t.is((await list(`?after=${first}`)).sums, null);
    t.is(codeOf(await callAdmin(stack.url, reader, 'GET', '/ledger/dead?after=99:1-0')), 'validation_failed');
    for (const { reason } of data) t.not(translateOperatorReason(reason), null, reason);
    const byCommand = await readAdmin<Entry[]>(stack.env, 'ledger', 'dead');
    t.deepEqual(
      byCommand.map(({ entry, amount }) => [entry, amount]),
      data.toReversed().map(({ entry, amount }) => [entry, amount]),
    );
    const { body: overview } = await callAdmin<{ ledger: { dead: number } }>(
      stack.url,
      reader,
      'GET',
      '/overview',
    );
    t.is(overview.ledger.dead, 4);
    const forbidden = await discard(first, '', await createToken(stack, 'ledger-billing', 'billing'));
    t.is(forbidden.status, 403);
  },
);

test.serial('of several operators one discards an entry, and what it was is in the audit log', async (t) => {
  const { id } = await stack.createAccount({ balance: '5' });
  await writeDeadCharges(stack, id, [uncounted, uncounted, counted]);
  const [last, second, first] = (await listAll()) as [Entry, Entry, Entry];
  const preview = async ({ entry }: Entry): Promise<object> =>
    (await discard<{ effects: object }>(entry, '?dry_run=true')).body.effects;
  const charge = {
    kind: 'charge',
    counted: false,
    is_credited_again: false,
    uncharged: 0.42,
    uncredited: 0,
    free_requests: 0,
  };
  t.deepEqual(await preview(first), { ...charge, entries_left: 2 });
  t.deepEqual(await preview(last), { ...charge, counted: true, uncharged: 0, entries_left: 2 });
  t.deepEqual(
    await readAdmin(stack.env, 'ledger', 'discard', first.entry, '--dry-run'),
    (await discard(first.entry, '?dry_run=true')).body,
  );
  t.is((await listAll()).length, 3);

  const calls = await Promise.all([1, 2, 3, 4].map(() => discard(first.entry)));
  t.deepEqual(
    calls.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 404, 404, 404],
  );
  t.deepEqual(calls.find(({ status }) => status === 200)!.body, first);
  t.deepEqual(await listAll(), [last, second]);
  t.is((await discard(first.entry, '?dry_run=true')).status, 404);
  t.is((await discard('0:1-0')).status, 404);
  t.is((await discard('all')).status, 404);
  const { body: log } = await callAdmin<ListedPage<{ outcome: string; before: object }>>(
    stack.url,
    testAdminToken,
    'GET',
    `/audit?resource=ledger:${first.entry}`,
  );
  const done = log.data.filter(({ outcome }) => outcome === 'done');
  t.like(done, [
    { action: 'ledger.discard', before: { account: id, amount: 0.42, request_id: first.request_id } },
  ]);
  t.is(done.length, 1);
  // What was counted is charged once; what was not is charged by nobody.
  const { body: books } = await callAdmin<{ checked: { spent: string } }>(
    stack.url,
    testAdminToken,
    'GET',
    `/accounts/${id}/ledger`,
  );
  t.is(books.checked.spent, '0.42');
});

test.serial('an entry that is set aside meanwhile is neither lost nor discarded', async (t) => {
  const { id } = await stack.createAccount({ balance: '5' });
  await writeDeadCharges(stack, id, [uncounted, uncounted]);
  const { data, last_id: place } = await list('?limit=1');
  await Promise.all([discard(data[0]!.entry), writeCharge(stack, id, counted)]);
  await waitFor(
    'the new entry',
    async () => (await stack.redis.xlen(redisKeys.ledgerDead(shardOf(id)))) === 2,
  );
  // The place of a page stays one when its entry is gone.
  const next = await list(`?after=${place}`);
  t.deepEqual(
    next.data.map(({ counted: isCounted }) => isCounted),
    [false],
  );
  t.deepEqual(
    (await listAll(1)).map(({ counted: isCounted }) => isCounted),
    [true, false],
  );
});
