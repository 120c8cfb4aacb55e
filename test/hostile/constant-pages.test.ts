import test from 'ava';
import { useStack } from '../support/stack.ts';
import { readThreadMs } from '../support/thread-clock.ts';
import { floodConstantPages } from './attacks/constant-pages.ts';

/** Public pages need no key and nobody is charged for them, so they must use almost no CPU time. */

// Serial, because the next test measures this process.
test.serial(
  'all requests of a pipelined flood for public pages are answered, while other callers chat',
  async (t) => {
    const stack = await useStack(t);
    const { apiKey } = await stack.createAccount();
    const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hi' }] };
    const flood = floodConstantPages({ url: stack.url, connections: 4, pipelined: 70 });
    for (let i = 0; i < 5; i++) t.is((await stack.post('/v1/chat/completions', apiKey, chat)).status, 200);
    t.is(await flood, 4 * 70);
    t.is((await fetch(`${stack.url}/v1/health`)).status, 200);
  },
);

test.serial(
  'a large page takes no more CPU time than a few small pages, even when it is compressed',
  async (t) => {
    const stack = await useStack(t, { workers: [] });
    const measureMs = async (path: string): Promise<number> => {
      const beforeMs = readThreadMs();
      t.is(await floodConstantPages({ url: stack.url, connections: 4, pipelined: 50, paths: [path] }), 200);
      return readThreadMs() - beforeMs;
    };
    // The minimum, because compilation and garbage collection distort some runs.
    const measureMinMs = async (path: string): Promise<number> => {
      const all = [];
      for (let i = 0; i < 5; i++) all.push(await measureMs(path));
      return Math.min(...all);
    };
    const [largeMs, smallMs] = [await measureMinMs('/docs'), await measureMinMs('/v1/servers')];
    t.log(`${largeMs} ms of CPU time, and ${smallMs} ms`);
    // Building and compressing each response separately would take 25 times as long.
    t.true(largeMs < 8 * smallMs, `${largeMs} ms, and ${smallMs} ms for a small page`);
  },
);
