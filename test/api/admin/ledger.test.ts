import test from 'ava';
import { verifyAccount } from '../../../api/endpoints/admin/verify-account.ts';
import type { VerifyDeps } from '../../../shared/admin/verify/verify-ledger.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import type { LedgerDocument } from '../../../shared/ledger/ledger-store.ts';
import { readAdmin } from '../../support/admin.ts';
import { callAdmin, createToken, testAdminToken } from '../../support/admin-api.ts';
import { findRow } from '../../support/observe.ts';
import { startStack, type TestStack } from '../../support/stack.ts';

/** The ledger in the admin API. */

interface Verified {
  readonly entries: number;
  readonly checked: {
    readonly added: string;
    readonly spent: string;
    readonly balance: string;
    readonly difference_count: number;
    readonly differences: readonly { readonly check: string; readonly found: string }[];
  } | null;
}

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());

const verify = async (id: string, token = testAdminToken): Promise<Verified> =>
  (await callAdmin<Verified>(stack.url, token, 'GET', `/accounts/${id}/ledger`)).body;

test('the books of an account are those that the command finds, and a difference is named', async (t) => {
  const account = await stack.createAccount({ balance: '7' });
  const response = await stack.post('/v1/chat/completions', account.apiKey, {
    model: 'demo-echo',
    messages: [{ role: 'user', content: 'one two three' }],
  });
  await response.arrayBuffer();
  const id = response.headers.get('x-request-id')!;
  await findRow(stack, id);
  const reader = await createToken(stack, 'books-reader', 'read');
  const { entries, checked } = await verify(account.id, reader);
  const byCommand = await readAdmin<{ entries: number; money: object }>(
    stack.env,
    'ledger',
    'verify',
    '--account',
    account.id,
  );
  t.deepEqual({ entries, ...checked }, {
    entries: byCommand.entries,
    ...byCommand.money,
    difference_count: 0,
    differences: [],
  } as never);

  await stack.mongo.db
    .collection<LedgerDocument>('ledger')
    .updateOne({ _id: id }, { $inc: { amountNano: -1n } });
  const wrong = (await verify(account.id)).checked!;
  t.true(wrong.difference_count > 0);
  t.true(wrong.differences.some(({ check }) => check === 'balance in MongoDB equals refills minus charges'));
  t.is((await callAdmin(stack.url, reader, 'GET', '/accounts/nobody/ledger')).status, 404);
});

test('an account with too many entries is left to the command', async (t) => {
  const limits: number[] = [];
  const ledger = {
    countEntries: (_: string, limit: number) => {
      limits.push(limit);
      return Promise.resolve(limit);
    },
  };
  const verified = await verifyAccount(
    { ledger } as unknown as VerifyDeps,
    'account',
    new AbortController().signal,
  );
  t.deepEqual(verified, { entries: limits[0]!, checked: null, whyNot: 'too_many_entries' });
});

interface ShardState {
  readonly pending?: number;
  readonly reserved?: number;
}

/** Of an account without entries, whose ledger is trimmed whenever it is read. */
function createBusyDeps({ pending = 0, reserved = 0 }: ShardState) {
  const shard = shardOf('account');
  const read: string[] = [];
  const transaction = {
    get: () => transaction,
    hgetall: () => transaction,
    xrange: () => transaction,
    exec: () => {
      read.push('ledger');
      return Promise.resolve([
        [null, `${read.length}-0`],
        [null, {}],
        [null, []],
      ]);
    },
  };
  const redis = {
    xlen: (key: string) => Promise.resolve(key === redisKeys.ledgerStream(shard) ? pending : -1),
    hlen: (key: string) => Promise.resolve(key === redisKeys.reservations(shard) ? reserved : -1),
    xrange: () => Promise.resolve([]),
    get: () => Promise.resolve(null),
    multi: () => transaction,
  };
  const deps = {
    redis,
    ledger: { countEntries: () => Promise.resolve(0) },
    accounts: { findByIds: () => Promise.resolve([]) },
    reservations: { findOrphans: () => Promise.resolve({ orphans: [], ahead: [], nowMs: 0 }) },
  } as unknown as VerifyDeps;
  return { deps, read };
}

test('a shard with much to read is not read, and one that changes is read a few times, while somebody waits', async (t) => {
  const waiting = new AbortController();
  const why = async (state: ShardState) => {
    const { deps, read } = createBusyDeps(state);
    const { whyNot, checked } = await verifyAccount(deps, 'account', waiting.signal);
    t.is(checked, null);
    return [whyNot, read.length];
  };
  t.deepEqual(await why({ pending: 5_001 }), ['ledger_behind', 0]);
  t.deepEqual(await why({ reserved: 5_001 }), ['busy', 0]);
  t.deepEqual(await why({ pending: 5_000, reserved: 5_000 }), ['busy', 5]);

  const { deps, read } = createBusyDeps({});
  const checking = verifyAccount(deps, 'account', waiting.signal);
  waiting.abort(new Error('answered'));
  await t.throwsAsync(checking, { message: 'answered' });
  t.true(read.length < 5);
});
