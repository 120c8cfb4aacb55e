import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startChat } from '../support/leaving.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const workers = [
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
] as const;
const common = 'type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }';

test('where streams are not read on, a caller who leaves has the vendor’s call ended, begun or not', async (t) => {
  const vendor = await startVendorSimulator({ replyWords: 400, logCapacity: 5_000 });
  t.teardown(() => vendor.close());
  // Neither vendor says anything more: what ends its call is that the caller left, for no timeout is as short.
  const stack = await useStack(t, {
    workers,
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1", disconnectGraceMs: 0 } }
models:
  - { id: begun, ${common}, routes: [{ upstream: vendor, model: gpt+stall-3 }] }
  - { id: silent, ${common}, routes: [{ upstream: vendor, model: gpt+hang }] }
`,
  });
  const { apiKey } = await stack.createAccount();
  for (const model of ['begun', 'silent']) {
    const caller = startChat(stack, apiKey, { model, stream: true });
    const entry = await vendor.requests.waitFor((one) => !one.isOver);
    if (model === 'begun') await caller.readUntil('content":"');
    caller.leave();
    await waitFor('the vendor to be left', () => entry.isOver);
    t.true(entry.isAborted, model);
  }
});
