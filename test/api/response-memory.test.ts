import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { askForVectors, checkVectors, writeTexts } from '../support/large-answers.ts';
import { findReservations, readLoss, toNano, waitForNoReservation } from '../support/observe.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Memory for answers runs out: who may wait for it, and who has to give it back. */

const catalogOf = (url: string): string => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}/v1" } }
models:
  - { id: emb, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: held, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb-held }] }
`;

let vendor: VendorSimulator;

test.before(async () => {
  vendor = await startVendorSimulator();
});
test.after.always(() => vendor.close());

const post = (stack: TestStack, { apiKey }: TestAccount, model: string, input: readonly string[]) =>
  stack.post('/v1/embeddings', apiKey, { model, input, encoding_format: 'base64' });

async function readRefusal(answer: Promise<Response>): Promise<string> {
  const response = await answer;
  const { error } = (await response.json()) as { error: { code: string } };
  return `${response.status} ${error.code}`;
}

test('nobody waits for memory who would not be admitted, and who waits holds no money meanwhile', async (t) => {
  // One answer of 200 vectors at a time.
  const stack = await useStack(t, {
    catalog: catalogOf(vendor.url),
    api: { responseMemoryBytes: 2_000_000 },
  });
  const [holder, waiter, banned] = [
    await stack.createAccount(),
    await stack.createAccount({ rpm: 10 }),
    await stack.createAccount(),
  ];
  const poor = await stack.createAccount({ balance: '0.000001' });
  const limited = await stack.createAccount({ rpm: 1 });
  t.is((await post(stack, limited, 'emb', ['cat'])).status, 200);
  await stack.redis.hset(redisKeys.account(banned.id), 'ban', '1');
  const held = vendor.hold('emb-held');
  t.teardown(() => held.end());
  const texts = writeTexts('text', 200);
  const first = askForVectors(stack, holder, 'held', texts);
  await waitFor('the call', () => held.waiting > 0);
  let isAnswered = false;
  const second = post(stack, waiter, 'emb', texts).finally(() => {
    isAnswered = true;
  });
  const refusals = await Promise.all(
    [poor, limited, banned].map((account) => readRefusal(post(stack, account, 'emb', texts))),
  );
  t.deepEqual(refusals, ['402 insufficient_balance', '429 rate_limit_exceeded', '403 account_banned']);
  t.false(isAnswered);
  t.deepEqual(await findReservations(stack, waiter.id), []);
  held.end();
  checkVectors(t, await first, texts);
  const response = await second;
  t.is(response.headers.get('x-ratelimit-remaining-requests'), '9', 'asked twice, it counts once');
  const { usage } = (await response.json()) as { usage: { cost_request: number } };
  await waitForNoReservation(stack);
  t.is(await readLoss(stack, waiter.id, '100'), toNano(usage.cost_request));
  t.is(await readLoss(stack, poor.id, '0.000001'), 0n);
});

test('answers that nobody reads are cut for another account that waits, those of whoever holds most', async (t) => {
  // Room for three answers of 2000 vectors and a little less than a fourth; no socket takes as much as one.
  const stack = await useStack(t, {
    catalog: catalogOf(vendor.url),
    api: { responseMemoryBytes: 49_300_000 },
  });
  const [hoarder, modest, caller] = [
    await stack.createAccount(),
    await stack.createAccount(),
    await stack.createAccount(),
  ];
  const texts = writeTexts('text', 2_000);
  const hoarded = await Promise.all([0, 1].map(() => post(stack, hoarder, 'emb', texts)));
  const kept = await post(stack, modest, 'emb', texts);
  const wanted = writeTexts('text', 2_048);
  const startedAtMs = performance.now();
  checkVectors(t, await askForVectors(stack, caller, 'emb', wanted), wanted);
  // The half minute that a caller has who keeps nobody waiting.
  t.true(performance.now() - startedAtMs < 25_000);
  const cut = await Promise.allSettled(hoarded.map((response) => response.arrayBuffer()));
  t.true(cut.some(({ status }) => status === 'rejected'));
  t.true((await kept.arrayBuffer()).byteLength > 2_000 * 1536 * 4);
});
