import test from 'ava';
import { useStack } from '../support/stack.ts';
import { sendManyKeys } from './attacks/many-keys.ts';

test('an invalid body with very many fields gets a 422', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { apiKey } = await stack.createAccount();
  t.deepEqual(await sendManyKeys({ url: stack.url, apiKey }), [422, 422]);
});
