import test from 'ava';
import { Chats, helloNano, helloTokens, usageOf } from '../support/chats.ts';
import { findRow, toNano } from '../support/observe.ts';

/** The cost of a chat under each kind of price. Prices are unusual on purpose, so that a wrong sum is noticed. */

const chats = new Chats(test);
const plain = chats.addModel('gpt-sim');

test('the vendor’s token counts are billed at the catalog’s prices, to the nano-rouble', async (t) => {
  const account = await chats.stack.createAccount();
  const { answer, requestId } = await chats.ask(account, plain);
  // 3 prompt tokens × 13.37 + 5 completion tokens × 42.42 = 252.21 millionths of a rouble
  t.is(answer.usage.cost_request, 0.00025221);
  await chats.costs(t, account, requestId, helloNano);
});

const addModelWithPrices = (prices: string): string =>
  chats.addScripted({ pricing: `pricing: { ${prices} }` });
const cached = addModelWithPrices(
  'prompt: 13.37, completion: 42.42, input_cache_read: 3.31, input_cache_write: 17.77',
);
const uncached = chats.addScripted();
const firstFamily = addModelWithPrices('in_cost_per_million: 7.1, out_cost_per_million: 9.9');
const bothFamilies = addModelWithPrices(
  'in_cost_per_million: 700, out_cost_per_million: 900, prompt: 1.5, completion: 2.5',
);
const overridden = addModelWithPrices(
  'prompt: 10.1, completion: 20.2, overrides: [{ min_prompt_tokens: 2000, prompt: 20.5, completion: 60.7 }, ' +
    '{ min_prompt_tokens: 3000, prompt: 31.3 }]',
);

const priced: readonly (readonly [title: string, model: string, usage: string, nano: bigint])[] = [
  [
    'cache reads and cache writes have their own prices',
    cached,
    usageOf(1000, 77, { cached_tokens: 400, cache_write_tokens: 100 }),
    // 500 uncached × 13.37 + 400 read × 3.31 + 100 written × 17.77 + 77 completion × 42.42 = 13 052.34
    13_052_340n,
  ],
  [
    'without their own price, cached tokens cost as much as other prompt tokens',
    uncached,
    usageOf(1000, 1, { cached_tokens: 400 }),
    13_412_420n,
  ],
  ['in_ and out_cost_per_million are token prices', firstFamily, usageOf(100, 10), 809_000n],
  [
    'prompt and completion take precedence over in_ and out_cost_per_million',
    bothFamilies,
    usageOf(100, 10),
    175_000n,
  ],
  ['below the threshold of an override the base price applies', overridden, usageOf(1999, 10), 20_391_900n],
  ['an override applies from its threshold on', overridden, usageOf(2000, 10), 41_607_000n],
  ['a price missing from an override stays at the base price', overridden, usageOf(3000, 10), 94_102_000n],
  [
    'if more cached tokens than prompt tokens are reported, all prompt tokens are billed as cached',
    cached,
    usageOf(10, 1, { cached_tokens: 999 }),
    75_520n,
  ],
];
for (const [title, model, usage, nano] of priced) {
  test(title, async (t) => {
    const account = await chats.stack.createAccount();
    const { status, answer, requestId } = await chats.ask(account, model, {}, usage);
    t.is(status, 200, JSON.stringify(answer));
    t.is(toNano(answer.usage.cost_request), nano);
    await chats.costs(t, account, requestId, nano);
  });
}

test('the usage in the response includes cached tokens', async (t) => {
  const account = await chats.stack.createAccount();
  const { answer, requestId } = await chats.ask(account, cached, {}, usageOf(50, 1, { cached_tokens: 40 }));
  t.is(answer.usage.prompt_tokens_details.cached_tokens, 40);
  t.is((await findRow(chats.stack, requestId)).cacheReadTokens, 40);
});

const byRequest = chats.addModel('gpt-sim', {
  pricing: 'pricing: { type: request, cost_per_request: 0.123456789 }',
});

test('a price per request is billed once, regardless of the output', async (t) => {
  const account = await chats.stack.createAccount();
  const { answer, requestId } = await chats.ask(account, byRequest, { n: 3 });
  t.is(answer.usage.cost_request, 0.123456789);
  await chats.costs(t, account, requestId, 123_456_789n);
});

const byTime = chats.addModel('gpt-sim+slow-300', {
  pricing: 'pricing: { type: time, cost_per_second: 0.01 }',
});

test.serial('a price per second is billed for the vendor’s response time', async (t) => {
  const account = await chats.stack.createAccount();
  const startedAtMs = performance.now();
  const { answer, requestId } = await chats.ask(account, byTime);
  const tookMs = performance.now() - startedAtMs;
  const row = await findRow(chats.stack, requestId);
  // The vendor takes 300 ms. How much later the response is read depends on the machine, but the total
  // cannot exceed the time that the caller waited.
  t.true(row.billedMs >= 295 && row.billedMs <= Math.ceil(tookMs), `${row.billedMs} of ${tookMs} ms`);
  t.is(toNano(answer.usage.cost_request), BigInt(row.billedMs) * 10_000n);
  await chats.costs(t, account, requestId, BigInt(row.billedMs) * 10_000n);
});

const modelWithoutUsage = chats.addModel('gpt-sim+nousage');

for (const stream of [false, true]) {
  test(`if the vendor reports no tokens, the gateway counts them itself${stream ? ', streamed' : ''}`, async (t) => {
    const account = await chats.stack.createAccount();
    const response = await chats.send(account, modelWithoutUsage, { stream });
    await response.text();
    const requestId = response.headers.get('x-request-id')!;
    const row = await findRow(chats.stack, requestId);
    // The 6 completion tokens: You| said|:| hello| there| world
    t.like(row, { counted: true, promptTokens: helloTokens, completionTokens: 6, success: true });
    // 10 prompt tokens × 13.37 + 6 completion tokens × 42.42
    await chats.costs(t, account, requestId, 388_220n);
  });
}

test('a cost above the balance reduces the balance to zero and never below', async (t) => {
  const account = await chats.stack.createAccount({ balance: '0.01' });
  // A request costs at most twice its reservation. This reservation is more than half of the balance, so the cost can
  // exceed the balance.
  const { status, requestId } = await chats.ask(account, cached, { max_tokens: 200 }, usageOf(4_000, 10));
  t.is(status, 200);
  const row = await findRow(chats.stack, requestId);
  const fullCost = 53_904_200n;
  t.is((await chats.stack.readAccount(account.id)).balanceNano, 0n);
  t.is(row.costNano, 10_000_000n);
  t.is(row.shortfallNano, fullCost - 10_000_000n);
});
