import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import { requestEmbeddings, checkVectors, writeTexts } from '../support/large-responses.ts';
import { readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';

test('many callers concurrently request far more inputs than fit in a vendor call, and every response arrives complete', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models: [{ id: emb, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb }] }]
`,
  });
  // 6 kB per vector: two responses that are large on their own, some that are not, and one that fits in a frame.
  const counts = [1_500, 1_100, 500, 300, 87, 12, 1];
  const callers = await Promise.all(
    counts.map(async (count, i) => ({
      account: await stack.createAccount(),
      texts: writeTexts(`caller ${i} text`, count),
    })),
  );
  const results = await Promise.all(
    callers.map(({ account, texts }) => requestEmbeddings(stack, account, 'emb', texts)),
  );
  await waitForNoReservation(stack);
  for (const [i, { account, texts }] of callers.entries()) {
    checkVectors(t, results[i]!, texts);
    const { usage } = results[i]!.body;
    // The vendor counts four tokens per text, and we count six or seven. In shared calls, the charge is in that range.
    const ownTokens = texts.reduce((sum, text) => sum + countTokens(text), 0);
    t.true(usage.prompt_tokens >= 3 * texts.length && usage.prompt_tokens <= ownTokens);
    t.is(await readAmountCharged(stack, account.id, '100'), toNano(usage.cost_request));
  }
});

test('vectors are bit-identical while buffers are reused and other requests are cancelled', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1", maxConcurrency: 3 } }
models: [{ id: emb, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb+slow-20 }] }]
`,
  });
  const counts = [257, 40, 500, 1, 90, 130];
  const callers = counts.map(async (count, caller) => {
    const account = await stack.createAccount();
    for (let round = 0; round < 6; round++) {
      // Half of the texts are the same in all rounds of a caller, so some are already in flight for a cancelled round.
      const texts = writeTexts(`caller ${caller}`, count).map((text, i) =>
        i % 2 ? text : `${text} ${round}`,
      );
      const cancelling = new AbortController();
      const cancelled = post(stack, account, texts, cancelling.signal).then(
        (response) => response.arrayBuffer(),
        () => undefined,
      );
      const [result] = await Promise.all([
        requestEmbeddings(stack, account, 'emb', texts),
        new Promise((resolve) => setImmediate(resolve)).then(() => cancelling.abort()),
      ]);
      checkVectors(t, result, texts);
      await cancelled?.catch(() => undefined);
    }
  });
  await Promise.all(callers);
});

const post = (stack: TestStack, { apiKey }: TestAccount, input: readonly string[], signal: AbortSignal) =>
  fetch(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'emb', input, encoding_format: 'base64' }),
    signal,
  });

test('unread responses of one account do not block those of another, and resume once they are read', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  // Enough for two responses of 12 MB, one per account. No socket buffers that much.
  const stack = await useStack(t, {
    api: { responseMemoryBytes: 26_000_000 },
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models: [{ id: emb, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb }] }]
`,
  });
  const [slow, other] = [await stack.createAccount(), await stack.createAccount()];
  const texts = writeTexts('text', 2_000);
  const never = new AbortController().signal;
  const unread = await post(stack, slow, texts, never);
  const second = post(stack, slow, texts, never);
  checkVectors(t, await requestEmbeddings(stack, other, 'emb', texts), texts);
  const inputs = vendor.requests.entries.flatMap(({ body }) => (body as { input: string[] }).input);
  t.is(inputs.length, 2 * texts.length, 'the second request has not been sent yet');
  await unread.arrayBuffer();
  t.is((await second).status, 200);
  await (await second).arrayBuffer();
});
