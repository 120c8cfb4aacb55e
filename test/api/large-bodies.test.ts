import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { BodyBudget } from '../../api/middleware/body-budget.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

test('bodies share a budget: one that does not fit is refused, and what ended gives its part back', (t) => {
  const budget = new BodyBudget(1_000_000);
  const [small, first, second] = [budget.open(), budget.open(), budget.open()];
  t.true(small.grow(200_000));
  t.is(budget.heldBytes, 0, 'small ones are not counted');
  t.true(first.grow(700_000));
  t.true(first.grow(600_000), 'what was said once holds');
  t.false(second.grow(400_000));
  t.is(budget.heldBytes, 700_000);
  first.close();
  t.true(second.grow(400_000));
  second.close();
  second.close();
  t.is(budget.heldBytes, 0);
});

test('past the budget a large body is told 503 with a time to come back, before it is read; others go on', async (t) => {
  const stack = await useStack(t, { api: { bodyBudgetBytes: 1_000_000 } });
  const { apiKey } = await stack.createAccount();
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const holding = request(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    headers: { ...headers, 'content-length': 900_000 },
  });
  holding.on('error', () => undefined);
  holding.flushHeaders();
  const large = { model: 'use-lite-en-512', input: 'word '.repeat(80_000) };
  holding.write('{"model":');
  t.not((await stack.post('/v1/embeddings', apiKey, large)).status, 503, 'what is announced takes no room');
  holding.write(`"${'a'.repeat(700_000)}`);
  const refused = await waitFor('a refusal', async () => {
    const response = await stack.post('/v1/embeddings', apiKey, large);
    return response.status === 503 ? response : null;
  });
  t.truthy(refused.headers.get('retry-after'));
  t.is(((await refused.json()) as { error: { code: string } }).error.code, 'queue_full');
  t.is(
    (await stack.post('/v1/embeddings', apiKey, { model: 'use-lite-en-512', input: 'small' })).status,
    200,
  );
  holding.destroy();
  await waitFor('room', async () => (await stack.post('/v1/embeddings', apiKey, large)).status !== 503);
});

test('an account that cannot pay, or may not send, is told so before a large body of it is counted', async (t) => {
  const stack = await useStack(t);
  const { apiKey } = await stack.createAccount({ balance: '0' });
  // Random letters take a hundred times as long to count as prose: seconds, for these.
  const letters = (length: number): string =>
    Array.from({ length }, (_, i) => String.fromCharCode(97 + ((i * 7_919 + (i % 13) * 31) % 26))).join('');
  const input = Array.from({ length: 60 }, (_, i) => `${i} ${letters(9_000)}`);
  const startedAt = performance.now();
  const response = await stack.post('/v1/embeddings', apiKey, { model: 'use-lite-en-512', input });
  t.is(response.status, 402);
  const tookMs = performance.now() - startedAt;
  const { apiKey: rich } = await stack.createAccount();
  const again = performance.now();
  await stack.post('/v1/embeddings', rich, { model: 'use-lite-en-512', input });
  t.true(
    tookMs * 3 < performance.now() - again,
    `${tookMs} ms, and ${performance.now() - again} ms for who pays`,
  );
});

test('a body that stops coming is told so after half a minute, and its room is others’', async (t) => {
  t.timeout(90_000);
  const stack = await useStack(t, { api: { bodyBudgetBytes: 1_000_000 } });
  const { apiKey } = await stack.createAccount();
  const stalled = request(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'content-length': 900_000,
    },
  });
  stalled.on('error', () => undefined);
  stalled.write(`{"model":"${'a'.repeat(700_000)}`);
  const [response] = (await once(stalled, 'response')) as [IncomingMessage];
  t.is(response.statusCode, 422);
  t.regex(await text(response), /Nothing more of the body has come for 30 s/);
  const large = { model: 'use-lite-en-512', input: 'word '.repeat(80_000) };
  await waitFor('room', async () => (await stack.post('/v1/embeddings', apiKey, large)).status !== 503);
});
