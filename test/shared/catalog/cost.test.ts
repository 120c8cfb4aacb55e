import test from 'ava';
import fc from 'fast-check';
import type { Pricing } from '../../../shared/contract/models.ts';
import { computeCost, computeWorstCase, noUsage, type Usage } from '../../../shared/catalog/cost.ts';

const price = (fields: Partial<Pricing>): Pricing => ({
  date_of_use: '2026-01-01',
  type: 'tokens',
  free_requests: false,
  ...fields,
});

interface Case {
  readonly title: string;
  readonly pricing: Pricing;
  readonly usage: Partial<Usage>;
  readonly costNano: bigint;
}

const tiers = price({
  prompt: 1,
  completion: 10,
  overrides: [
    { min_prompt_tokens: 100, prompt: 2 },
    { min_prompt_tokens: 200, completion: 30 },
  ],
});

const cases: Case[] = [
  {
    title: 'tokens of both kinds',
    pricing: price({ in_cost_per_million: 2, out_cost_per_million: 8 }),
    usage: { promptTokens: 10, completionTokens: 5 },
    costNano: 60_000n,
  },
  {
    title: 'prompt and completion win over in_cost_per_million and out_cost_per_million',
    pricing: price({ in_cost_per_million: 99, prompt: 2, completion: 0 }),
    usage: { promptTokens: 10 },
    costNano: 20_000n,
  },
  {
    title: 'an explicit price of zero is a price',
    pricing: price({ in_cost_per_million: 99, prompt: 0 }),
    usage: { promptTokens: 10 },
    costNano: 0n,
  },
  {
    title: 'one price for all tokens',
    pricing: price({ cost_per_million: 3 }),
    usage: { promptTokens: 1, completionTokens: 1 },
    costNano: 6_000n,
  },
  {
    title: 'cached tokens at their own prices',
    pricing: price({ prompt: 10, input_cache_read: 1, input_cache_write: 20 }),
    usage: { promptTokens: 10, cacheReadTokens: 4, cacheWriteTokens: 2 },
    costNano: 84_000n,
  },
  {
    title: 'a missing cache price is the prompt price',
    pricing: price({ prompt: 10 }),
    usage: { promptTokens: 10, cacheReadTokens: 4, cacheWriteTokens: 2 },
    costNano: 100_000n,
  },
  {
    title: 'more cached tokens than prompt tokens cost no more than the prompt tokens',
    pricing: price({ prompt: 10, input_cache_read: 10 }),
    usage: { promptTokens: 10, cacheReadTokens: 400 },
    costNano: 100_000n,
  },
  {
    title: 'below the first override',
    pricing: tiers,
    usage: { promptTokens: 99, completionTokens: 1 },
    costNano: 109_000n,
  },
  {
    title: 'at the first override',
    pricing: tiers,
    usage: { promptTokens: 100, completionTokens: 1 },
    costNano: 210_000n,
  },
  {
    title: 'only the highest override that is reached applies',
    pricing: tiers,
    usage: { promptTokens: 200, completionTokens: 1 },
    costNano: 230_000n,
  },
  {
    title: 'half a nano-rouble rounds up',
    pricing: price({ prompt: 0.0005 }),
    usage: { promptTokens: 1 },
    costNano: 1n,
  },
  {
    title: 'less than half rounds down',
    pricing: price({ prompt: 0.000_499 }),
    usage: { promptTokens: 1 },
    costNano: 0n,
  },
  {
    title: 'rounding happens once, at the end',
    pricing: price({ prompt: 0.0004, completion: 0.0004 }),
    usage: { promptTokens: 1, completionTokens: 1 },
    costNano: 1n,
  },
  {
    title: 'images',
    pricing: price({ type: 'image', cost_per_image: 1.5 }),
    usage: { images: 3 },
    costNano: 4_500_000_000n,
  },
  {
    title: 'images by quality',
    pricing: price({ type: 'image', cost_per_image: 1, cost_per_image_quality: { hd: 8 } }),
    usage: { images: 1, imageQuality: 'hd' },
    costNano: 8_000_000_000n,
  },
  {
    title: 'images by quality and size',
    pricing: price({ type: 'image', cost_per_image_quality: { hd: { '512x512': 2 } } }),
    usage: { images: 2, imageQuality: 'hd', imageSize: '512x512' },
    costNano: 4_000_000_000n,
  },
  {
    title: 'a quality without a price takes the price of one image',
    pricing: price({ type: 'image', cost_per_image: 1, cost_per_image_quality: { hd: 8 } }),
    usage: { images: 1, imageQuality: 'low' },
    costNano: 1_000_000_000n,
  },
  {
    title:
      'an image without a price of its own takes the most expensive price, so that nothing is free by accident',
    pricing: price({ type: 'image', cost_per_image_quality: { hd: 8, low: { '1x1': 9 } } }),
    usage: { images: 1 },
    costNano: 9_000_000_000n,
  },
  {
    title: 'names of inherited object properties are not qualities',
    pricing: price({ type: 'image', cost_per_image_quality: { hd: { '512x512': 2 } } }),
    usage: { images: 1, imageQuality: 'constructor', imageSize: 'name' },
    costNano: 2_000_000_000n,
  },
  {
    title: 'names of inherited object properties are not sizes',
    pricing: price({ type: 'image', cost_per_image: 3, cost_per_image_quality: { hd: { '512x512': 2 } } }),
    usage: { images: 1, imageQuality: 'hd', imageSize: 'toString' },
    costNano: 3_000_000_000n,
  },
  {
    title: 'a clock that stepped back is free and gives no credit',
    pricing: price({ type: 'time', cost_per_second: 0.5 }),
    usage: { durationMs: -600_000 },
    costNano: 0n,
  },
  {
    title: 'seconds',
    pricing: price({ type: 'time', cost_per_second: 0.5 }),
    usage: { durationMs: 1_500 },
    costNano: 750_000_000n,
  },
  {
    title: 'characters',
    pricing: price({ type: 'characters', cost_per_million: 100 }),
    usage: { characters: 7 },
    costNano: 700_000n,
  },
  {
    title: 'per request',
    pricing: price({ type: 'request', cost_per_request: 0.25 }),
    usage: { promptTokens: 5 },
    costNano: 250_000_000n,
  },
];

for (const { title, pricing, usage, costNano } of cases) {
  test(`cost: ${title}`, (t) => {
    t.is(computeCost(pricing, { ...noUsage, ...usage }), costNano);
  });
}

const somePrice = fc.integer({ min: 0, max: 1_000_000 }).map((milli) => milli / 1_000);

test('usage within the reserved tokens never costs more than the reservation, for any cached tokens and overrides', (t) => {
  const overrides = fc.array(
    fc.record({
      min_prompt_tokens: fc.integer({ min: 1, max: 2_000 }),
      prompt: somePrice,
      completion: somePrice,
      input_cache_read: somePrice,
    }),
    { maxLength: 3 },
  );
  fc.assert(
    fc.property(
      fc.record({
        prompt: somePrice,
        completion: somePrice,
        input_cache_read: somePrice,
        input_cache_write: somePrice,
        overrides,
      }),
      fc.nat(1_500),
      fc.nat(1_500),
      fc.nat(1_500),
      fc.nat(1_500),
      (fields, promptTokens, completionTokens, cacheReadTokens, cacheWriteTokens) => {
        const pricing = price(fields);
        const worst = computeWorstCase(pricing, { ...noUsage, promptTokens });
        const cost = computeCost(pricing, {
          ...noUsage,
          promptTokens,
          completionTokens,
          cacheReadTokens,
          cacheWriteTokens,
        });
        return cost <= worst.fixedNano + worst.nanoPerCompletionToken * BigInt(completionTokens);
      },
    ),
    { numRuns: 2_000 },
  );
  t.pass();
});

/**
 * A price in whole nano-roubles per million tokens, so that the tests below can compute the exact cost in integers.
 */
const nanoPrice = fc.integer({ min: 0, max: 2_000_000_000_000 });
const toRub = (nano: number): number =>
  Number(`${Math.floor(nano / 1e9)}.${String(nano % 1e9).padStart(9, '0')}`);

test('the cost is each kind of token times its price, rounded once, half up, to a nano-rouble', (t) => {
  const tokens = fc.nat(2_000_000);
  fc.assert(
    fc.property(
      fc.record({ prompt: nanoPrice, completion: nanoPrice, read: nanoPrice, write: nanoPrice }),
      fc.record({ fresh: tokens, completion: tokens, read: tokens, write: tokens }),
      (prices, used) => {
        const pricing = price({
          prompt: toRub(prices.prompt),
          completion: toRub(prices.completion),
          input_cache_read: toRub(prices.read),
          input_cache_write: toRub(prices.write),
        });
        const cost = computeCost(pricing, {
          ...noUsage,
          promptTokens: used.fresh + used.read + used.write,
          completionTokens: used.completion,
          cacheReadTokens: used.read,
          cacheWriteTokens: used.write,
        });
        const exact =
          BigInt(prices.prompt) * BigInt(used.fresh) +
          BigInt(prices.completion) * BigInt(used.completion) +
          BigInt(prices.read) * BigInt(used.read) +
          BigInt(prices.write) * BigInt(used.write);
        // The difference in millionths of a nano-rouble: at most half if rounded up, less than half if rounded down.
        const rounding = cost * 1_000_000n - exact;
        return rounding <= 500_000n && rounding > -500_000n;
      },
    ),
    { numRuns: 2_000 },
  );
  t.pass();
});

test('seconds, characters, images and requests cost their number times their price, and zero units cost nothing', (t) => {
  const count = fc.nat(4_000_000);
  fc.assert(
    fc.property(nanoPrice, count, (nano, units) => {
      const rub = toRub(nano);
      const cost = (type: Pricing['type'], usage: Partial<Usage>): bigint =>
        computeCost(
          price({
            type,
            cost_per_second: rub,
            cost_per_million: rub,
            cost_per_image: rub,
            cost_per_request: rub,
          }),
          { ...noUsage, ...usage },
        );
      const total = BigInt(nano) * BigInt(units);
      const halfUp = (divisor: bigint): bigint => (total + divisor / 2n) / divisor;
      t.is(cost('time', { durationMs: units }), halfUp(1_000n));
      t.is(cost('characters', { characters: units }), halfUp(1_000_000n));
      t.is(cost('image', { images: units }), total);
      t.is(cost('request', {}), BigInt(nano));
      for (const type of ['time', 'characters', 'image', 'tokens'] as const) t.is(cost(type, {}), 0n);
    }),
    { numRuns: 500 },
  );
});

test('models that share overrides keep their own other prices', (t) => {
  const overrides = [{ min_prompt_tokens: 100, prompt: 2 }];
  const usage = { ...noUsage, promptTokens: 100, completionTokens: 100 };
  const costOf = (completion: number): bigint =>
    computeCost(price({ prompt: 1, completion, overrides }), usage);
  t.is(costOf(10), 1_200_000n);
  t.is(costOf(20), 2_200_000n);
});
