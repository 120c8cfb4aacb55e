import test from 'ava';
import fc from 'fast-check';
import { shareExactly } from '../../../workers/embeddings/share-exactly.ts';

test('shares are integers, sum to the total, and differ by at most one from the exact shares', (t) => {
  fc.assert(
    fc.property(
      fc.nat(300_000),
      fc.array(fc.nat(8_192), { minLength: 1, maxLength: 100 }),
      (total, weights) => {
        const shares = shareExactly(total, weights);
        const sum = weights.reduce((a, b) => a + b, 0);
        t.is(
          shares.reduce((a, b) => a + b, 0),
          total,
        );
        if (sum > 0) shares.forEach((share, i) => t.true(Math.abs(share - (total * weights[i]!) / sum) < 1));
      },
    ),
  );
  t.pass();
});
