import { randomUUID } from 'node:crypto';
import test from 'ava';
import { useWebStores } from '../../support/use-web-stores.ts';

const openStores = useWebStores(test);
const language = 'ru';

test('of 20 parallel sign-ups with one address, one creates the user, and all get the same user', async (t) => {
  const { users, mongo } = await openStores(t);
  const results = await Promise.all(
    Array.from({ length: 20 }, () => users.findOrCreate('ann@example.com', { language })),
  );
  t.is(results.filter(({ isNew }) => isNew).length, 1);
  t.is(new Set(results.map(({ user }) => user._id)).size, 1);
  t.is(await mongo.db.collection('web_users').countDocuments(), 1);
});

test('a user is found by id and address, and an unknown one is not', async (t) => {
  const { users } = await openStores(t);
  const { user, isNew } = await users.findOrCreate('ann@example.com', {
    language: 'en',
    timezone: 'Europe/Moscow',
  });
  t.true(isNew);
  t.like(user, { language: 'en', timezone: 'Europe/Moscow', lastLoginAt: null, bannedAt: null });
  t.deepEqual(await users.findById(user._id), user);
  t.deepEqual(await users.findByEmail('ann@example.com'), user);
  t.true(await users.isKnown('ann@example.com'));
  t.false(await users.isKnown('bob@example.com'));
  t.is(await users.findByEmail('bob@example.com'), null);
  t.is(await users.findById(randomUUID()), null);
});

test('the settings of a user do not change when the user signs in again', async (t) => {
  const { users } = await openStores(t);
  const { user } = await users.findOrCreate('ann@example.com', { language });
  t.is(user.timezone, 'UTC');
  const moved = await users.setTimezone(user._id, 'Asia/Omsk');
  const again = await users.findOrCreate('ann@example.com', { language: 'en', timezone: 'Europe/Paris' });
  t.false(again.isNew);
  t.deepEqual(again.user, moved);
  const signedIn = await users.recordSignIn(user._id, 'en');
  t.is(signedIn?.language, 'en');
  t.true(signedIn?.lastLoginAt instanceof Date);
  t.is(await users.recordSignIn(randomUUID(), 'en'), null);
});

test('the time and reason of a ban do not change until it is lifted', async (t) => {
  const { users } = await openStores(t);
  const { user } = await users.findOrCreate('ann@example.com', { language });
  t.is((await users.ban(user._id, 'spam'))?.banReason, 'spam');
  t.true((await users.findById(user._id))?.bannedAt instanceof Date);
  t.deepEqual(await users.unban(user._id), user);
  t.is(await users.ban(randomUUID(), null), null);
});

test('users are listed oldest first', async (t) => {
  const { users, mongo } = await openStores(t);
  const createdUsers = [];
  for (const name of ['ann', 'bob', 'cyd']) {
    createdUsers.push((await users.findOrCreate(`${name}@example.com`, { language })).user);
  }
  const [first] = createdUsers;
  const latest = new Date(Date.now() + 1_000);
  await mongo.db
    .collection<{ _id: string }>('web_users')
    .updateOne({ _id: first!._id }, { $set: { createdAt: latest } });
  const listed = [];
  for await (const user of users.list()) listed.push(user);
  t.is(listed.length, 3);
  t.deepEqual(listed.at(-1), { ...first!, createdAt: latest });
});

test('if a reserved account id is replaced twice at the same time, one replacement succeeds', async (t) => {
  const { users } = await openStores(t);
  const { user } = await users.findOrCreate('ann@example.com', { language });
  const replace = () => users.replaceReservedAccountId(user._id, user.reservedAccountId);
  const replaced = await Promise.all([replace(), replace()]);
  t.deepEqual(replaced.toSorted(), [false, true]);
  t.not((await users.findById(user._id))?.reservedAccountId, user.reservedAccountId);
});
