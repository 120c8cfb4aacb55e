import test from 'ava';
import { useStack } from '../support/stack.ts';
import { readThreadMs } from '../support/thread-clock.ts';
import { floodConstantPages } from './attacks/constant-pages.ts';

/** What anybody may read needs no key and is counted for nobody: it must cost next to nothing. */

// Serial, as the one below measures this process.
test.serial('pipelined floods of pages without a key are answered whole, while others chat', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount();
  const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hi' }] };
  const flood = floodConstantPages({ url: stack.url, connections: 4, pipelined: 70 });
  for (let i = 0; i < 5; i++) t.is((await stack.post('/v1/chat/completions', apiKey, chat)).status, 200);
  t.is(await flood, 4 * 70);
  t.is((await fetch(`${stack.url}/v1/health`)).status, 200);
});

test.serial('a large page costs no more than a few small ones, compressed as well', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const measureMs = async (path: string): Promise<number> => {
    const beforeMs = readThreadMs();
    t.is(await floodConstantPages({ url: stack.url, connections: 4, pipelined: 50, paths: [path] }), 200);
    return readThreadMs() - beforeMs;
  };
  // The best of some, as code is compiled and garbage is collected meanwhile.
  const best = async (path: string): Promise<number> => {
    const all = [];
    for (let i = 0; i < 5; i++) all.push(await measureMs(path));
    return Math.min(...all);
  };
  const [largeMs, smallMs] = [await best('/docs'), await best('/v1/servers')];
  t.log(`${largeMs} ms of CPU, and ${smallMs} ms`);
  // Where each answer is made and compressed by itself it is twenty-five times as much.
  t.true(largeMs < 8 * smallMs, `${largeMs} ms, and ${smallMs} ms for a small page`);
});
