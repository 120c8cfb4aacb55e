import { request as requestHttp, type ClientRequest } from 'node:http';
import test from 'ava';
import { startEndlessVendor, type EndlessVendor } from '../support/endless-vendor.ts';
import { findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';

/**
 * Accounts share the slots of a route: if an account does not read a stream, the stream's slot goes to another account
 * that waits.
 */

const slots = 3;

let vendor: EndlessVendor;
let stack: TestStack;

test.before(async () => {
  vendor = await startEndlessVendor();
  stack = await startStack({
    catalog: `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendor.url}/v1", maxConcurrency: ${slots}, disconnectGraceMs: 100 }
models:
  - { id: endless, type: chat, context: 100000000, max_output_tokens: 10000000, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: endless }] }
  - { id: short, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: short }] }
`,
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const messages = [{ role: 'user', content: 'Hello' }];

/** Opens a stream and never reads it. Resolves with its id, which arrives with the headers. */
async function openUnread({ apiKey }: TestAccount): Promise<{ id: string; request: ClientRequest }> {
  const body = JSON.stringify({ model: 'endless', stream: true, max_tokens: 5_000_000, messages });
  return await new Promise((resolve, reject) => {
    const request = requestHttp(
      `${stack.url}/v1/chat/completions`,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      },
      (response) => {
        response.on('error', () => undefined);
        resolve({ id: String(response.headers['x-request-id']), request });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

test('if another account waits, unread streams lose their route slots, and their caller pays for the output so far', async (t) => {
  const unreadAccount = await stack.createAccount();
  const caller = await stack.createAccount();
  const unread = await Promise.all(Array.from({ length: slots }, () => openUnread(unreadAccount)));
  await vendor.blocked;
  const startedAtMs = performance.now();
  const response = await stack.post('/v1/chat/completions', caller.apiKey, {
    model: 'short',
    stream: true,
    messages,
  });
  t.is(response.status, 200);
  t.regex(await response.text(), /hello/);
  // Less than the 30 seconds that an unread stream gets while no other account waits.
  t.true(performance.now() - startedAtMs < 20_000);
  const row = await Promise.race(unread.map(async ({ id }) => await findRow(stack, id)));
  t.is(row.responseCode, 499);
  t.regex(row.details ?? '', /stopped reading/);
  t.true(row.completionTokens > 1_000);
  for (const { request } of unread) request.destroy();
  await waitForNoReservation(stack, unreadAccount.id);
  t.true((await readAmountCharged(stack, unreadAccount.id, '100')) > 0n);
});
