import test, { type ExecutionContext } from 'ava';
import { nameCode, openRefillCodes, RefillCodeStore } from '../../../shared/accounts/refill-code-store.ts';
import type { RefillCodeStatus } from '../../../shared/contract/admin-terms.ts';
import { SignupGrantStore } from '../../../shared/accounts/signup-grant-store.ts';
import { countExamined } from '../../support/examined-documents.ts';
import { useMongo } from '../../support/use-mongo.ts';

const connect = useMongo(test);

const value = { balanceNano: 5_000_000_000n, freeRequests: 0, expiresAt: null };
const amounts = { balanceNano: 1n, freeRequests: 0 };

async function useCodes(t: ExecutionContext) {
  const mongo = connect(t);
  const store = new RefillCodeStore(mongo.db);
  await store.createIndexes();
  const readAll = async (
    status: RefillCodeStatus | null,
    limit: number,
    batch: string | null = null,
  ): Promise<string[]> => {
    const ids: string[] = [];
    for (;;) {
      const page = await store.listPage({ status, batch }, ids.at(-1) ?? null, limit);
      ids.push(...page.map(({ _id }) => _id));
      if (page.length < limit) return ids;
    }
  };
  return { mongo, store, readAll };
}

test('pages list each code once, newest first, also codes that were created together', async (t) => {
  const { mongo, store, readAll } = await useCodes(t);
  const codes = [...(await store.create(7, value)), ...(await store.create(6, value))];
  const expired = { ...value, expiresAt: new Date(Date.now() - 1_000) };
  await store.create(1, expired);
  await new SignupGrantStore(mongo.db).claim('user', 'account', amounts);
  await store.claim(codes[0]!, 'account', 'refill-1');
  await store.revoke(codes[1]!);
  const documents = await openRefillCodes(mongo.db)
    .find({ source: { $exists: false } })
    .toArray();
  const sorted = documents.toSorted(
    (one, other) => other.createdAt.getTime() - one.createdAt.getTime() || (one._id < other._id ? 1 : -1),
  );
  const ids = sorted.map(({ _id }) => _id);
  t.is(ids.length, 14);
  const now = new Date();
  const unused = sorted.filter(
    ({ redeemed, revokedAt, expiresAt }) =>
      redeemed === null && revokedAt === null && (expiresAt === null || expiresAt > now),
  );
  for (const limit of [1, 3, 100]) {
    t.deepEqual(await readAll(null, limit), ids);
    t.deepEqual(
      await readAll('unused', limit),
      unused.map(({ _id }) => _id),
    );
  }
  t.is(unused.length, 11);
});

test('pages of each status and of each call list each of their codes once', async (t) => {
  const { mongo, store, readAll } = await useCodes(t);
  const codes = await store.create(6, value, 'first');
  await store.create(2, { ...value, expiresAt: new Date(Date.now() - 1_000) }, 'second');
  await new SignupGrantStore(mongo.db).claim('user', 'account', amounts);
  for (const code of codes.slice(0, 2)) await store.claim(code, 'account', `refill-${code}`);
  const revoked = codes.slice(2, 5).map((code) => nameCode(code).id);
  t.is(await store.revokeAll(revoked), 3);
  t.is(await store.revokeAll(revoked), 0);
  const expected = { unused: 1, redeemed: 2, revoked: 3, expired: 2 } as const;
  for (const [status, count] of Object.entries(expected) as [RefillCodeStatus, number][])
    for (const limit of [1, 2, 100]) {
      const ids = await readAll(status, limit);
      t.is(ids.length, count, `${status}, ${limit}`);
      t.is(new Set(ids).size, count);
      const ofBatch = await readAll(status, limit, status === 'expired' ? 'second' : 'first');
      t.deepEqual(ofBatch.toSorted(), ids.toSorted());
    }
  t.is((await readAll(null, 2, 'first')).length, 6);
  t.is((await store.listBatch('second')).length, 2);
});

test('a page reads its own codes, however many sign-ups and redeemed codes are newer', async (t) => {
  const { mongo, store } = await useCodes(t);
  await store.create(40, value);
  await store.revokeAll((await store.create(40, value)).map((code) => nameCode(code).id));
  const codes = openRefillCodes(mongo.db);
  const many = Array.from({ length: 1_000 }, (_, i) => i);
  const later = new Date(Date.now() + 60_000);
  const base = { hint: '', ...amounts, createdAt: later, expiresAt: null, revokedAt: null };
  const redeem = (i: number) => ({
    accountId: 'account',
    refillId: `refill-${i}`,
    at: later,
    code: '',
    settled: true,
  });
  await codes.insertMany(
    many.flatMap((i) => [
      { ...base, _id: `signup-${i}`, source: 'signup' as const, redeemed: redeem(i) },
      { ...base, _id: `denied-${i}`, source: 'signup' as const, redeemed: null },
    ]),
  );
  const page = 20;
  for (const status of [null, 'unused', 'revoked', 'redeemed'] as const) {
    let last = '';
    const first = await countExamined(mongo, async () => {
      last = (await store.listPage({ status, batch: null }, null, page)).at(-1)!._id;
    });
    const second = await countExamined(mongo, () => store.listPage({ status, batch: null }, last, page));
    for (const { documents, keys } of [first, second]) {
      t.true(documents <= page + 1, `${documents} documents`);
      t.true(keys <= page + 10, `${keys} keys`);
    }
    // The second page begins with a look-up of the last code of the first.
    t.deepEqual([...first.maxTimesMs, ...second.maxTimesMs.slice(1)], [5_000, 5_000]);
    if (status === null)
      await codes.insertMany(many.map((i) => ({ ...base, _id: `redeemed-${i}`, redeemed: redeem(i) })));
  }
});
