import test from 'ava';
import { useStack } from '../support/stack.ts';
import { sendForwardedText } from './attacks/forwarded-text.ts';

test('X-Forwarded-For is stored only if it is an IP address', async (t) => {
  const stack = await useStack(t, { env: { TRUST_PROXY: 'on' } });
  const { apiKey } = await stack.createAccount();
  const addresses = await sendForwardedText({ url: stack.url, apiKey });
  t.deepEqual([...new Set(addresses)], ['127.0.0.1']);
});
