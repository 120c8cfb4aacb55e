import test from 'ava';
import { useStack } from '../support/stack.ts';

test('a request is paid from the balance and its receipt is what the balance lost', async (t) => {
  const stack = await useStack(t);
  const account = await stack.createAccount({ balance: '1' });
  const response = await stack.post('/v1/embeddings', account.apiKey, {
    model: 'use-lite-en-512',
    input: 'cat',
  });
  t.is(response.status, 200);
  const { usage } = (await response.json()) as { usage: { cost_request: number; prompt_tokens: number } };
  t.is(usage.prompt_tokens, 1);
  t.is(usage.cost_request, 0.00001);
  t.is((await stack.readAccount(account.id)).balanceNano, 999_990_000n);
});
