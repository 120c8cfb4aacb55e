import test from 'ava';
import { useStack } from '../support/stack.ts';
import { floodConstantPages } from './attacks/constant-pages.ts';

/** What anybody may read needs no key and is counted for nobody: it must cost next to nothing. */

test('pipelined floods of pages without a key are answered whole, while others chat', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount();
  const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hi' }] };
  const flood = floodConstantPages({ url: stack.url, connections: 4, pipelined: 70 });
  for (let i = 0; i < 5; i++) t.is((await stack.post('/v1/chat/completions', apiKey, chat)).status, 200);
  t.is((await flood).answered, 4 * 70);
  t.is((await fetch(`${stack.url}/v1/health`)).status, 200);
});
