import test from 'ava';
import { Int32 } from 'bson';
import { encodeDocument } from '../../../../scripts/embedded/mongo/bson/document.ts';
import { expireDocuments } from '../../../../scripts/embedded/mongo/expire.ts';
import { Collection } from '../../../../scripts/embedded/mongo/storage/collection.ts';
import { Store } from '../../../../scripts/embedded/mongo/storage/store.ts';
import { makeTempDir } from './mongo-fixture.ts';

/** One more than a batch of deletions. */
const documents = 501;

/** A store with expired documents. Calls `betweenBatches` once, after the first batch of documents has been deleted. */
async function openStore(
  dir: string,
  betweenBatches: (store: Store, rows: Collection) => void,
): Promise<Store> {
  const store = new Store(dir, false, () => undefined);
  await store.write(() => {
    const rows = store.ensureCollection('test', 'rows');
    rows.createIndex({ key: { at: 1 }, name: 'at_1', expireAfterSeconds: 10 });
    for (let n = 0; n < documents; n += 1) {
      const document = { _id: new Int32(n), at: new Date(0) };
      rows.insert(document, encodeDocument(document));
    }
  });
  const write = store.write.bind(store);
  let isFirst = true;
  store.write = async (action) => {
    const outcome = await write(action);
    if (isFirst) betweenBatches(store, store.findCollection('test', 'rows')!);
    isFirst = false;
    return outcome;
  };
  return store;
}

test('if a collection is reloaded between two batches, as after a failed commit, all its documents still expire', async (t) => {
  const store = await openStore(await makeTempDir(t), (opened, rows) => {
    const { id, db, name } = rows;
    const indexes = rows.describe()['indexes'] as NonNullable<
      ConstructorParameters<typeof Collection>[1]['indexes']
    >;
    const again = new Collection(opened, { id, db, name, indexes });
    opened.collections.set(again.namespace, again);
    // Makes the reloaded collection compute its count now, before the remaining documents are deleted.
    again.countDocuments();
  });
  t.is(await expireDocuments(store), documents);
  t.is(store.findCollection('test', 'rows')?.countDocuments(), 0);
  await store.close();
});

test('if a collection is removed between two batches, no more of its documents expire', async (t) => {
  const store = await openStore(await makeTempDir(t), (opened, rows) => {
    opened.collections.delete(rows.namespace);
  });
  t.is(await expireDocuments(store), documents - 1);
  await store.close();
});
