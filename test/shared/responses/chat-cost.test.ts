import test from 'ava';
import { withCost } from '../../../shared/responses/chat-cost.ts';

test('a chat response shows the debited cost, even if its text contains other costs', (t) => {
  const response = (cost: number): Buffer =>
    Buffer.from(
      JSON.stringify({
        choices: [{ message: { content: 'Here: {"cost_request": 5}, \\"cost_request\\":7' } }],
        usage: { total_tokens: 3, cost_request: cost, free_request: false },
      }),
    );
  t.is(withCost(response(0.5), 250_000_000n).toString(), response(0.25).toString());
  t.is(withCost(response(0.5), 0n).toString(), response(0).toString());
  const same = response(0.5);
  t.is(withCost(same, 500_000_000n), same);
  const without = Buffer.from('{"choices":[]}');
  t.is(withCost(without, 1n), without);
});
