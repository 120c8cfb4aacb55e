import test, { type ExecutionContext } from 'ava';
import { openWebDatabase } from '../../../shared/account-area/web-database-store.ts';
import { openWebStores } from '../../../shared/account-area/web-stores.ts';
import { useStack } from '../../support/stack.ts';
import { openAbsentMongo } from '../../support/use-mongo.ts';
import { testMasterKey, useUnpreparedWebStores } from '../../support/use-web-stores.ts';
import { waitFor } from '../../support/wait-for.ts';

const openUnprepared = useUnpreparedWebStores(test);
const openStores = async (t: ExecutionContext) => {
  const stores = openUnprepared(t);
  await stores.createIndexes();
  return stores;
};

test('the models have indexes for unique values, session expiry and queries', async (t) => {
  const { mongo, createIndexes } = await openStores(t);
  await createIndexes();
  const read = async (collection: string) =>
    (await mongo.db.collection(collection).indexes())
      .filter(({ name }) => name !== '_id_')
      .map(({ key, unique, expireAfterSeconds, partialFilterExpression }) => ({
        key: key as object,
        ...(unique === true && { unique }),
        ...(expireAfterSeconds !== undefined && { expireAfterSeconds: expireAfterSeconds }),
        ...(partialFilterExpression !== undefined && {
          partialFilterExpression,
        }),
      }));
  t.deepEqual(await read('web_users'), [
    { key: { email: 1 }, unique: true },
    { key: { createdAt: 1, _id: 1 } },
  ]);
  t.deepEqual(await read('web_sessions'), [
    { key: { userId: 1 } },
    { key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ]);
  // The unique indexes are created first.
  t.deepEqual(await read('web_links'), [
    { key: { accountId: 1 }, unique: true },
    { key: { userId: 1, createdAt: 1 } },
  ]);
  t.deepEqual(await read('web_audit'), [
    { key: { userId: 1, at: -1 } },
    { key: { notice: 1, at: 1 }, partialFilterExpression: { notice: 'pending' } },
    { key: { at: 1 }, expireAfterSeconds: 400 * 86_400 },
  ]);
});

test('if a non-unique index cannot be created, the models still work', async (t) => {
  const { mongo, users } = openUnprepared(t);
  // As created by a release that kept the audit log for a different time.
  await mongo.db.collection('web_audit').createIndex({ at: 1 }, { expireAfterSeconds: 60 });
  await Promise.all([1, 2, 3].map(() => users.findByEmail('ann@example.com')));
  const unique = (await mongo.db.collection('web_users').indexes()).filter((index) => index.unique === true);
  t.is(unique.length, 1);
});

test('a worker creates the indexes', async (t) => {
  const { mongo } = await useStack(t);
  const isUnique = async (collection: string) => {
    const indexes = await mongo.db.collection(collection).indexes();
    return indexes.some(({ unique }) => unique === true);
  };
  for (const collection of ['web_users', 'web_links']) {
    // A collection that does not exist yet has no indexes to read.
    await waitFor(`the index of ${collection}`, () => isUnique(collection).catch(() => false));
  }
  t.pass();
});

test('the models use the same database and client as the other stores', async (t) => {
  const { mongo, users } = await openStores(t);
  const { user } = await users.findOrCreate('ann@example.com', { language: 'en' });
  const stored = await mongo.db.collection<{ _id: string }>('web_users').findOne({ _id: user._id });
  t.deepEqual(stored, { ...user });
  const models = await openWebDatabase(mongo).models();
  t.is(models.users.db.getClient(), mongo.client);
});

test('an unknown field is rejected in writes and in queries', async (t) => {
  const { mongo } = await openStores(t);
  const { users } = await openWebDatabase(mongo).models();
  const strange = { isAdmin: true } as object;
  await t.throwsAsync(users.updateOne({ _id: 'a' }, { $set: strange }).exec(), { name: 'StrictModeError' });
  await t.throwsAsync(users.findOne(strange).exec(), { name: 'StrictModeError' });
});

test('while MongoDB is unavailable, the first and later calls fail with service_unavailable, and they work once it is back', async (t) => {
  const { mongo, start } = await openAbsentMongo(t);
  const { users } = openWebStores(mongo, { masterKey: testMasterKey });
  const find = () => users.isKnown('ann@example.com');
  const untilBack = () =>
    waitFor('MongoDB to be found', async () => (await find().catch(() => null)) !== null);

  // Two concurrent calls wait for the same attempt to connect.
  await Promise.all([find(), find()].map((call) => t.throwsAsync(call, { code: 'service_unavailable' })));
  const server = await start();
  await untilBack();
  await users.findOrCreate('ann@example.com', { language: 'en' });
  await server.close();
  await t.throwsAsync(find(), { code: 'service_unavailable' });
  const again = await start();
  t.teardown(() => again.close());
  await untilBack();
  t.true(await find());
});
