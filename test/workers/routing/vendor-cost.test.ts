import test from 'ava';
import fc from 'fast-check';
import { noUsage } from '../../../shared/catalog/cost.ts';
import { addCosts, computeVendorCost, shareCost } from '../../../workers/routing/vendor-cost.ts';
import type { CatalogRoute } from '../../../shared/catalog/catalog-schema.ts';

const route = (cost: CatalogRoute['cost'], kind: 'openai' | 'builtin' = 'openai') =>
  ({ cost, upstream: { kind } }) as CatalogRoute;

const tokens = {
  date_of_use: '',
  type: 'tokens',
  prompt: 100,
  completion: 300,
  free_requests: false,
} as const;

test('a vendor charges by the prices of the route, exactly, and it is unknown what a route without them costs', (t) => {
  const usage = { ...noUsage, promptTokens: 7, completionTokens: 3 };
  t.is(computeVendorCost(route(tokens), usage), 1_600_000n);
  t.is(computeVendorCost(route(null), usage), null);
  t.is(computeVendorCost(route(null, 'builtin'), usage), 0n);
});

test('a sum with an unknown cost is unknown', (t) => {
  t.is(addCosts(1n, 2n), 3n);
  t.is(addCosts(1n, null), null);
  t.is(addCosts(null, 2n), null);
});

test('shares of a cost sum to it exactly, and differ by less than a nano-rouble from the exact shares', (t) => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 2n ** 60n }),
      fc.array(fc.nat(8_192), { minLength: 1, maxLength: 100 }),
      (cost, weights) => {
        const shares = shareCost(cost, weights);
        const sum = BigInt(weights.reduce((a, b) => a + b, 0));
        t.is(
          shares.reduce((a, b) => a + b, 0n),
          cost,
        );
        for (const [i, share] of shares.entries()) {
          t.true(share >= 0n);
          const difference = share * sum - cost * BigInt(weights[i]!);
          if (sum > 0n) t.true(difference < sum && difference > -sum);
        }
      },
    ),
  );
  t.deepEqual(shareCost(10n, [0, 0, 0, 0]), [2n, 3n, 2n, 3n]);
  t.deepEqual(shareCost(10n, []), []);
});
