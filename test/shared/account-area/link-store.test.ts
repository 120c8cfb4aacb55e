import { randomUUID } from 'node:crypto';
import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import { LinkStore, maxLinks } from '../../../shared/account-area/link-store.ts';
import { openWebDatabase } from '../../../shared/account-area/web-database-store.ts';
import { maxLinkId } from '../../../shared/account-area/web-models.ts';
import { useWebStores } from '../../support/use-web-stores.ts';

const openStores = useWebStores(test);
const label = 'Основной';

test('if 20 users link the same account concurrently, exactly one succeeds', async (t) => {
  const { links, mongo } = await openStores(t);
  const accountId = randomUUID();
  const results = await Promise.allSettled(
    Array.from({ length: 20 }, () => links.create({ userId: randomUUID(), accountId, label })),
  );
  const createdLinks = results.filter((result) => result.status === 'fulfilled');
  t.is(createdLinks.length, 1);
  for (const result of results) {
    if (result.status === 'rejected') t.is((result.reason as AppError).code, 'already_linked');
  }
  t.deepEqual(await links.findByAccount(accountId), createdLinks[0]!.value);
  t.is(await mongo.db.collection('web_links').countDocuments(), 1);
});

test('only its own user can read or change a link', async (t) => {
  const { links } = await openStores(t);
  const [userId, otherUserId] = [randomUUID(), randomUUID()];
  const link = await links.create({ userId, accountId: randomUUID(), label });
  t.true(Number.isInteger(link._id) && link._id >= 1 && link._id <= maxLinkId);
  t.is(await links.find(otherUserId, link._id), null);
  t.is(await links.setLabel(otherUserId, link._id, 'mine'), null);
  t.is(await links.delete(otherUserId, link._id), null);
  t.deepEqual(await links.list(otherUserId), []);
  t.deepEqual(await links.find(userId, link._id), link);
  t.deepEqual(await links.setLabel(userId, link._id, 'work'), { ...link, label: 'work' });
});

test('links are listed oldest first', async (t) => {
  const { links, mongo } = await openStores(t);
  const userId = randomUUID();
  const createdLinks = [];
  for (let i = 0; i < 3; i++)
    createdLinks.push(await links.create({ userId, accountId: randomUUID(), label }));
  const oldest = new Date(Date.now() - 60_000);
  await mongo.db
    .collection<{ _id: number }>('web_links')
    .updateOne({ _id: createdLinks[2]!._id }, { $set: { createdAt: oldest } });
  t.deepEqual((await links.list(userId))[0], { ...createdLinks[2]!, createdAt: oldest });
});

test('a link is deleted once, and its account can be linked again', async (t) => {
  const { links } = await openStores(t);
  const [userId, accountId] = [randomUUID(), randomUUID()];
  const link = await links.create({ userId, accountId, label });
  const deleted = await Promise.all([links.delete(userId, link._id), links.delete(userId, link._id)]);
  t.is(deleted.filter((one) => one !== null).length, 1);
  t.is(await links.findByAccount(accountId), null);
  t.is((await links.create({ userId: randomUUID(), accountId, label })).accountId, accountId);
});

test('if its id is already in use, a link gets another one', async (t) => {
  const { mongo } = await openStores(t);
  const ids = [7, 7, 7, maxLinkId];
  const links = new LinkStore(openWebDatabase(mongo), { createId: () => ids.shift()! });
  const create = () => links.create({ userId: randomUUID(), accountId: randomUUID(), label });
  t.is((await create())._id, 7);
  t.is((await create())._id, maxLinkId);
});

test('a user has at most 100 links, even if more are created simultaneously', async (t) => {
  const { links, mongo } = await openStores(t);
  const userId = randomUUID();
  const createdAt = new Date();
  const documents = Array.from({ length: maxLinks - 1 }, (_, i) => ({
    _id: i + 1,
    userId,
    accountId: randomUUID(),
    label,
    createdAt,
  }));
  await mongo.db.collection<{ _id: number }>('web_links').insertMany(documents);
  const create = () => links.create({ userId, accountId: randomUUID(), label });
  await Promise.allSettled(Array.from({ length: 5 }, create));
  t.true((await links.list(userId)).length <= maxLinks);
  if ((await links.list(userId)).length < maxLinks) await create();
  t.is((await links.list(userId)).length, maxLinks);
  const error = await t.throwsAsync(create(), { instanceOf: AppError });
  t.is(error?.code, 'validation_failed');
  t.deepEqual(error?.issues[0]?.loc, ['body', 'api_key']);
});
