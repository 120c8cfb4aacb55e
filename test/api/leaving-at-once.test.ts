import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** How soon a vendor's call ends: a time of the machine's, which other tests beside it would change. */

const workers = [
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
] as const;
const common = 'type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }';

test('where streams are not read on, a caller who leaves has the vendor’s call ended within 100 ms, begun or not', async (t) => {
  const vendor = await startVendorSimulator({ replyWords: 400, logCapacity: 5_000 });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    workers,
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1", disconnectGraceMs: 0 } }
models:
  - { id: dripping, ${common}, routes: [{ upstream: vendor, model: gpt+drip-50 }] }
  - { id: slow, ${common}, routes: [{ upstream: vendor, model: gpt+slow-20000 }] }
`,
  });
  const { apiKey } = await stack.createAccount();
  for (const model of ['dripping', 'slow']) {
    const leaving = new AbortController();
    const answer = fetch(`${stack.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'go on' }] }),
      signal: leaving.signal,
    }).then((response) => response.text());
    const hasFailed = answer.then(
      () => false,
      () => true,
    );
    await waitFor('the call', () =>
      vendor.requests.entries.some((entry) => entry.model?.startsWith('gpt') && !entry.isOver),
    );
    const entry = vendor.requests.entries.find((one) => !one.isOver)!;
    const leftAt = performance.now();
    leaving.abort();
    t.true(await hasFailed);
    await waitFor('the vendor to be left', () => entry.isOver);
    const tookMs = performance.now() - leftAt;
    t.true(entry.isAborted);
    // A hundred, and what looking for it takes.
    t.true(tookMs < 150, `${model}: ${tookMs} ms`);
  }
});
