import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startChat } from '../support/disconnecting-caller.ts';
import { findRow, readAmountCharged } from '../support/observe.ts';
import { parseSse } from '../support/sse-events.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** Streams that are silent for more than two seconds. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1" }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: chat }] }
  - { id: failing, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: bad+slow-3000+fail-400 }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;
test.before(async () => {
  vendor = await startVendorSimulator();
  stack = await startStack({
    catalog: catalogOf(vendor.url),
    api: { firstCommentMs: 1_900 },
    workers: [{ queues: ['chat'], concurrency: 1 }],
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const chat = { model: 'chat', stream: true, messages: [{ role: 'user', content: 'hi' }] };

test.serial('a waiting stream begins with comments, which contain the position in the queue', async (t) => {
  const account = await stack.createAccount();
  const hold = vendor.hold('chat');
  t.teardown(() => hold.end());
  const first = startChat(stack, account.apiKey, chat);
  await first.readUntil(': keep-alive\n');
  const second = startChat(stack, account.apiKey, chat);
  await second.readUntil(': queued position=1\n');
  hold.end();
  for (const caller of [first, second]) t.true(parseSse(await caller.rest()).isDone);
});

test.serial('a failure after the first comment is an event, and is not charged', async (t) => {
  const account = await stack.createAccount();
  const response = await stack.post('/v1/chat/completions', account.apiKey, { ...chat, model: 'failing' });
  t.is(response.status, 200);
  const { events, isDone } = parseSse(await response.text());
  t.false(isDone);
  t.deepEqual(
    events.map(({ error }) => error?.code),
    ['upstream_rejected'],
  );
  const row = await findRow(stack, response.headers.get('x-request-id')!);
  t.like(row, { success: false, errorCode: 'upstream_rejected' });
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});
