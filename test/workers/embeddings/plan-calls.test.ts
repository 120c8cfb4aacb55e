import test from 'ava';
import fc from 'fast-check';
import { planCalls, shareExactly } from '../../../workers/embeddings/plan-calls.ts';

test('every input is in exactly one call, in order, and no call passes a limit that more than one input fills', (t) => {
  const inputs = fc.array(fc.record({ part: fc.nat(3), text: fc.constant('x'), tokens: fc.nat(50) }));
  fc.assert(
    fc.property(
      inputs,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 100 }),
      (all, maxInputs, maxTokens) => {
        const calls = planCalls(all, { maxInputs, maxTokens });
        t.deepEqual(calls.flat(), all);
        for (const call of calls) {
          t.true(call.length > 0 && call.length <= maxInputs);
          t.true(call.length === 1 || call.reduce((sum, input) => sum + input.tokens, 0) <= maxTokens);
        }
      },
    ),
  );
  t.pass();
});

test('shares are whole, sum to the total, and are within one of the exact share', (t) => {
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
