import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startChat } from '../support/disconnecting-caller.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

const workers = [
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
] as const;
const common = 'type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }';

test('without a disconnect grace, a disconnect aborts the vendor call, whether or not output has started', async (t) => {
  const vendor = await startVendorSimulator({ replyWords: 400, logCapacity: 5_000 });
  t.teardown(() => vendor.close());
  // The vendor sends nothing more for either model, and no timeout is short enough to end the call, so only the
  // disconnect can.
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
    await waitFor('the vendor call to end', () => entry.isOver);
    t.true(entry.isAborted, model);
  }
});
