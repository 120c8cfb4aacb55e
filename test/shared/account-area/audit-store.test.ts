import { randomUUID } from 'node:crypto';
import test from 'ava';
import { useWebStores } from '../../support/use-web-stores.ts';

const openStores = useWebStores(test);
const future = (): Date => new Date(Date.now() + 60_000);

test('an event is written before its action, and completed with the outcome afterwards', async (t) => {
  const { audit } = await openStores(t);
  const userId = randomUUID();
  const origin = {
    address: '203.0.113.7',
    device: 'Firefox, Linux',
    sessionId: randomUUID(),
    requestId: 'r',
  };
  const id = await audit.start({ userId, action: 'key-revealed', linkId: 7, notice: 'pending', ...origin });
  const [started] = await audit.list(userId, 10);
  t.like(started, { _id: id, action: 'key-revealed', linkId: 7, accountId: null, ...origin });
  t.like(started, { outcome: 'started', notice: 'pending' });
  await audit.finish(id, 'done');
  t.like((await audit.list(userId, 10))[0], { outcome: 'done', notice: 'pending' });
  await audit.markQueued(id);
  t.like((await audit.list(userId, 10))[0], { outcome: 'done', notice: 'queued' });
});

test('a finished action may add whether there was a grant, and no other event has that field', async (t) => {
  const { audit } = await openStores(t);
  const userId = randomUUID();
  for (const grant of ['granted', 'network_limit'] as const)
    await audit.finish(await audit.start({ userId, action: 'account-created' }), 'done', { grant });
  await audit.finish(await audit.start({ userId, action: 'account-created' }), 'done');
  t.deepEqual(
    (await audit.list(userId, 10)).map((event) => event.grant),
    [undefined, 'network_limit', 'granted'],
  );
});

test('an event that needs no notice is written once', async (t) => {
  const { audit } = await openStores(t);
  const userId = randomUUID();
  await audit.start({ userId, action: 'signed-in', outcome: 'done' });
  t.like((await audit.list(userId, 1))[0], { outcome: 'done', notice: 'none', address: null, linkId: null });
});

test('only pending notices older than the given age are found, oldest first', async (t) => {
  const { audit } = await openStores(t);
  const startedAt = new Date();
  const userId = randomUUID();
  const start = () => audit.start({ userId, action: 'account-unlinked', notice: 'pending' });
  const ids = [];
  for (let i = 0; i < 5; i++) ids.push(await start());
  await audit.start({ userId, action: 'signed-in' });
  await audit.markQueued(ids[1]!);
  await audit.finish(ids[3]!, 'failed');
  t.deepEqual(await audit.findPending(startedAt, 10), []);
  const idsOf = async (limit: number) => (await audit.findPending(future(), limit)).map(({ _id }) => _id);
  t.deepEqual(await idsOf(10), [ids[0]!, ids[2]!, ids[4]!]);
  t.deepEqual(await idsOf(2), [ids[0]!, ids[2]!]);
});

test("a user's events are listed newest first, up to the requested number", async (t) => {
  const { audit } = await openStores(t);
  const userId = randomUUID();
  const ids = [];
  for (let i = 0; i < 4; i++) ids.push(await audit.start({ userId, action: 'label-changed' }));
  await audit.start({ userId: randomUUID(), action: 'label-changed' });
  const listed = (await audit.list(userId, 3)).map(({ _id }) => _id);
  t.deepEqual(listed, ids.toReversed().slice(0, 3));
});
