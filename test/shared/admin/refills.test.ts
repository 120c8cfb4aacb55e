import test from 'ava';
import { listRefills } from '../../../shared/admin/refills.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

test('a gap in the ordinals of refills ends neither their list nor a search', async (t) => {
  const { ledger, redis, hotAccounts } = services;
  const { id: accountId } = await services.createAccount({ balanceNano: 1n });
  // A search reads 200 at a time.
  const ordinals = [1, 2, 3, 7, 700, 701];
  await ledger.refillLogs.insertMany(
    ordinals.map((ordinal) => ({
      _id: `refill-${ordinal}`,
      accountId,
      at: new Date(),
      ordinal,
      code: '',
      amountNano: 1n,
      freeRequests: 0,
      source: 'admin' as const,
      note: 'goodwill',
    })),
  );
  const listAll = async (search: string | null): Promise<number[]> => {
    const found: number[] = [];
    for (let after: number | null = null; ;) {
      const page = await listRefills({ ledger, redis, hotAccounts }, accountId, { limit: 2, after, search });
      found.push(...page.rows.map(({ ordinal }) => ordinal));
      if (!page.hasMore) return found;
      after = Number(page.lastId);
    }
  };
  t.deepEqual(await listAll(null), [701, 700, 7, 3, 2, 1]);
  t.deepEqual(await listAll('goodwill'), [701, 700, 7, 3, 2, 1]);
});
