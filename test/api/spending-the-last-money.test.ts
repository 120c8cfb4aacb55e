import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { findReservations, findRow } from '../support/observe.ts';
import { chatWithUsage, startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** The last roubles of a balance: callers cannot spend more than the balance, and no part of it is lost. */

const catalogOf = (vendorUrl: string, scriptedUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  scripted: { kind: openai, baseUrl: "${scriptedUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { type: request, cost_per_request: 1.000000007 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: picture, type: image, context: 8192, pricing: { type: image, cost_per_image: 1.000000007 }, routes: [{ upstream: vendor, model: img }] }
  - { id: greedy, type: chat, context: 8192, pricing: { prompt: 1000, completion: 1000 }, routes: [{ upstream: scripted, model: gpt }] }
`;

/** Far more than any prompt of these tests reserves, but within the model's context. */
const reportedUsage = { prompt_tokens: 4_000, completion_tokens: 100, total_tokens: 4_100 };

let vendor: VendorSimulator;
let scripted: ScriptedVendor;
let stack: TestStack;

test.before(async () => {
  vendor = await startVendorSimulator({ logCapacity: 0 });
  scripted = await startScriptedVendor(() => chatWithUsage(reportedUsage));
  stack = await startStack({ catalog: catalogOf(vendor.url, scripted.url) });
});
test.after.always(async () => {
  await stack.close();
  await Promise.all([vendor.close(), scripted.close()]);
});

const messages = [{ role: 'user', content: 'hi' }];

for (const { kind, path, body } of [
  { kind: 'chats', path: '/v1/chat/completions', body: { model: 'chat', messages } },
  { kind: 'images', path: '/v1/images/generations', body: { model: 'picture', prompt: 'a fox' } },
]) {
  test(`if the balance covers ten of 200 concurrent ${kind}, ten use it up to the last nano-rouble, and 190 are rejected`, async (t) => {
    const account = await stack.createAccount({ balance: '10.00000007' });
    const responses = await Promise.all(
      Array.from({ length: 200 }, () => stack.post(path, account.apiKey, body)),
    );
    const count = (status: number): number => responses.filter((one) => one.status === status).length;
    t.deepEqual([count(200), count(402)], [10, 190]);
    t.like(await stack.readAccount(account.id), { balanceNano: 0n, reservedNano: 0n });
    t.deepEqual(await findReservations(stack, account.id), []);
    t.is(await stack.redis.hget(redisKeys.account(account.id), 'charges'), '10');
  });
}

test('usage beyond the balance is never charged, and the log row shows the shortfall', async (t) => {
  const account = await stack.createAccount({ balance: '2' });
  const body = { model: 'greedy', messages, max_tokens: 100 };
  const responses = await Promise.all(
    Array.from({ length: 20 }, () => stack.post('/v1/chat/completions', account.apiKey, body)),
  );
  const succeeded = responses.filter((one) => one.status === 200);
  t.true(succeeded.length > 1);
  t.true(responses.every((one) => one.status === 200 || one.status === 402));
  t.like(await stack.readAccount(account.id), { balanceNano: 0n, reservedNano: 0n });
  const rows = await Promise.all(succeeded.map((one) => findRow(stack, one.headers.get('x-request-id')!)));
  // 4100 tokens at a thousand roubles per million.
  t.true(rows.every((row) => row.costNano + row.shortfallNano === 4_100_000_000n));
  t.true(rows.every((row) => row.shortfallNano > 0n));
  t.is(
    rows.reduce((sum, row) => sum + row.costNano, 0n),
    2_000_000_000n,
  );
});
