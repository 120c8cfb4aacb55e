import test from 'ava';
import { AccountStore, type AccountDocument } from '../../../shared/accounts/account-store.ts';
import { listSearchWords } from '../../../shared/accounts/search-words.ts';
import { listAccounts, searchAccounts } from '../../../shared/admin/search-accounts.ts';
import { countExamined } from '../../support/examined-documents.ts';
import { useMongo } from '../../support/use-mongo.ts';

const connect = useMongo(test);

test('a search that finds nothing among a thousand words reads them in a few reads', async (t) => {
  const mongo = connect(t);
  const accounts = new AccountStore(mongo.db, { masterKey: 'x'.repeat(40), revealsKeys: false });
  await accounts.createIndexes();
  const name = 'anna smith';
  const ids = Array.from({ length: 1_500 }, (_, i) => `account-${String(i).padStart(4, '0')}`);
  await mongo.db
    .collection<AccountDocument>('accounts')
    .insertMany(ids.map((_id) => ({ _id, keyHash: _id, name }) as AccountDocument));
  const words = ids.flatMap((accountId) =>
    Array.from(listSearchWords({ name }), (word) => ({
      _id: `${word} ${accountId}`,
      accountId,
      at: new Date(),
    })),
  );
  await mongo.db.collection<{ _id: string }>('account_words').insertMany(words);
  const request = { limit: 20, after: null };
  const { maxTimesMs: reads } = await countExamined(mongo, async () => {
    const page = await searchAccounts({ accounts }, 'smith boris', request);
    t.deepEqual(page.rows, []);
    t.true(page.hasMore, 'the next page goes on');
  });
  t.true(reads.length <= 12, `${reads.length} reads`);
  const found = await searchAccounts({ accounts }, 'smith anna', request);
  t.is(found.rows.length, 20);
});

test('a page of banned accounts reads no others', async (t) => {
  const mongo = connect(t);
  const accounts = new AccountStore(mongo.db, { masterKey: 'x'.repeat(40), revealsKeys: false });
  await accounts.createIndexes();
  const many = Array.from({ length: 2_000 }, (_, i) => {
    const _id = `account-${String(i).padStart(4, '0')}`;
    return { _id, keyHash: _id, banned: i % 50 === 0, createdAt: new Date(i * 1_000) } as AccountDocument;
  });
  await mongo.db.collection<AccountDocument>('accounts').insertMany(many);
  const read = (after: string | null) => listAccounts({ accounts }, { limit: 10, after }, { banned: true });
  const { documents } = await countExamined(mongo, async () => {
    const first = await read(null);
    const second = await read(first.lastId);
    t.deepEqual(
      [...first.rows, ...second.rows].map(({ _id }) => _id),
      many
        .filter(({ banned }) => banned)
        .toReversed()
        .slice(0, 20)
        .map(({ _id }) => _id),
    );
  });
  t.true(documents <= 40, `${documents} documents`);
});
