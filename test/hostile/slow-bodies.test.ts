import test from 'ava';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { sendSlowBodies } from './attacks/slow-bodies.ts';

const bodyTimes = { smallMs: 4_000, stallMs: 4_000, graceMs: 1_000 };

test('unfinished small bodies of an account use a limited part of the body memory, and get a 408', async (t) => {
  const stack = await useStack(t, { workers: [], api: { requestMemoryBytes: 2_000_000, bodyTimes } });
  const [slow, other] = [await stack.createAccount(), await stack.createAccount()];
  const attack = sendSlowBodies({ url: stack.url, apiKey: slow.apiKey });
  const body = { model: 'nope', input: 'a'.repeat(500_000) };
  const post = async (): Promise<number> => (await stack.post('/v1/embeddings', other.apiKey, body)).status;
  t.is(await post(), 404, 'another account has memory');
  const { ended } = await attack;
  t.deepEqual(Object.keys(ended).toSorted(), ['408', '503']);
  // One account may use half of the two megabytes, which is enough for this many bodies of 60 KB.
  t.true(ended['408']! <= 17, `${ended['408']} bodies were held in memory`);
  t.is(ended['408']! + ended['503']!, 200);
  const isServed = async (): Promise<boolean> =>
    (await stack.post('/v1/embeddings', slow.apiKey, body)).status === 404;
  await waitFor('the account itself to be served again', isServed);
});

test('a caller that sends its key but no body gets a 408 and is disconnected as soon as the timeout expires', async (t) => {
  const stack = await useStack(t, { workers: [], api: { bodyTimes } });
  const { apiKey } = await stack.createAccount();
  const { ended } = await sendSlowBodies({ url: stack.url, apiKey, count: 20, sent: 0 });
  t.deepEqual(ended, { 408: 20 });
});
