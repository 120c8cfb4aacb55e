import test from 'ava';
import { hashSecret } from '../../shared/accounts/credentials.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { readStatus, sendUnknownKeys } from './attacks/unknown-keys.ts';

/** The BSON of a string field with this name, which occurs in every key lookup and in no other query of the api. */
const lookUpMark = '\u0002keyHash\0';

test('while MongoDB is slow, a flood of unknown keys uses only a few connections, and a key from another network is looked up', async (t) => {
  const stack = await useStack(t, { holdsMongo: true, workers: [], api: { keyWaitMs: 60_000 } });
  const account = await stack.createAccount();
  const proxy = stack.mongoProxy!;
  proxy.hold(lookUpMark);
  const flood = sendUnknownKeys({ url: stack.url, requests: 400, concurrency: 400 });
  await waitFor('the lookups of the flood', () => proxy.countSent(lookUpMark) >= 5);
  const other = readStatus(stack.url, account.apiKey, undefined, '127.0.0.2');
  await waitFor('the lookup of the other key', () => proxy.countSent(hashSecret(account.apiKey)) === 1);
  t.is(proxy.countSent(lookUpMark), 6);
  proxy.release();
  t.is(await other, 200);
  const statuses = await flood;
  t.is((statuses.get(401) ?? 0) + (statuses.get(503) ?? 0), 400);
  const calm = await sendUnknownKeys({ url: stack.url, requests: 100, concurrency: 20 });
  t.deepEqual([...calm], [[401, 100]]);
});
