import { inspect } from 'node:util';
import test from 'ava';
import { RequestLogStore, type RequestLogFilter } from '../../shared/ledger/request-log-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { openMongo } from '../../shared/platform/storage/mongo-client.ts';
import { nameDatabase, requireMongod, useRealMongo } from '../support/real-mongod.ts';
import { requestRow } from '../support/request-rows.ts';

const realTest = requireMongod(test.serial);

interface Profiled {
  readonly command: { readonly aggregate?: string };
  readonly planSummary?: string;
  readonly docsExamined?: number;
  readonly keysExamined?: number;
  readonly nreturned?: number;
  readonly hasSortStage?: boolean;
}

realTest('every page of a customer’s request log is read by an index, and no row for nothing', async (t) => {
  const set = await useRealMongo(t, 'one');
  const mongo = openMongo(nameDatabase(set.url), createLogger('test', 'silent'));
  t.teardown(() => mongo.close());
  const ledger = new LedgerStore(mongo.db);
  await ledger.createIndexes();
  const now = Date.now();
  const rows = Array.from({ length: 4_000 }, (_, i) => {
    const at = new Date(now - i * 100_000);
    return requestRow(i % 3 === 0 ? 'ann' : `other-${i % 50}`, {
      _id: `r-${i}`,
      model: `model-${(i * 7) % 5}`,
      success: i % 11 !== 0,
      at,
      settledAt: at,
      ordinal: 4_000 - i,
    });
  });
  await ledger.logs.insertMany(rows);
  const store = new RequestLogStore(ledger, new PriceStore(mongo.db));
  const since = new Date(now - 20_000_000);
  const until = new Date(now - 10_000_000);
  const filters: RequestLogFilter[] = [
    {},
    { requestId: 'r-3' },
    ...[{}, { model: 'model-1' }].flatMap((model) =>
      [{}, { outcome: 'error' as const }].flatMap((outcome) =>
        [{}, { since, until }].map((period) => ({ ...model, ...outcome, ...period })),
      ),
    ),
  ];
  const reader = { accountId: 'ann' };
  for (const filter of filters) {
    await mongo.db.command({ profile: 2 });
    const { totalCount } = await store.readPage(reader, filter, 1, 100);
    await store.count(reader, filter, 1_000);
    for await (const page of store.readPages(reader, filter, 50, (read) => read())) t.true(page.length <= 50);
    await mongo.db.command({ profile: 0 });
    const profile = mongo.db.collection<Profiled>('system.profile');
    const queries = await profile.find({ ns: /request_logs$/, planSummary: { $exists: true } }).toArray();
    t.true(queries.length > 0);
    for (const query of queries) {
      const text = inspect({ filter, query }, { depth: 8 });
      t.regex(query.planSummary!, /^(IXSCAN|IDHACK|COUNT_SCAN|EOF)/, text);
      t.not(query.hasSortStage, true, text);
      // A sum returns one row, and reads those that it sums.
      const needed = query.command.aggregate === undefined ? (query.nreturned ?? 0) : totalCount;
      t.true((query.docsExamined ?? 0) <= needed + 1, text);
    }
    await profile.drop();
  }
});
