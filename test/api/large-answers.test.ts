import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { countTokens } from '../../shared/pricing/count-tokens.ts';
import { askForVectors, checkVectors, writeTexts } from '../support/large-answers.ts';
import { readLoss, toNano, waitForNoReservation } from '../support/observe.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';

test('answers of many callers at once, far more than a process asks for at a time, reach each of them whole', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models: [{ id: emb, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb }] }]
`,
  });
  // 6 kB a vector: two answers that alone are larger than that, some that are not, and one that goes in a frame.
  const counts = [1_500, 1_100, 500, 300, 87, 12, 1];
  const callers = await Promise.all(
    counts.map(async (count, i) => ({
      account: await stack.createAccount(),
      texts: writeTexts(`caller ${i} text`, count),
    })),
  );
  const answers = await Promise.all(
    callers.map(({ account, texts }) => askForVectors(stack, account, 'emb', texts)),
  );
  await waitForNoReservation(stack);
  for (const [i, { account, texts }] of callers.entries()) {
    checkVectors(t, answers[i]!, texts);
    const { usage } = answers[i]!.body;
    // The vendor counts four words a text and we six or seven tokens; in shared calls a bill is of either, or between them.
    const own = texts.reduce((sum, text) => sum + countTokens(text), 0);
    t.true(usage.prompt_tokens >= 3 * texts.length && usage.prompt_tokens <= own);
    t.is(await readLoss(stack, account.id, '100'), toNano(usage.cost_request));
  }
});

test('vectors are right to the bit while buffers are used again, whoever leaves meanwhile', async (t) => {
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
      // Half of the texts are shared by all rounds of the caller: some of them are under way for a round that left.
      const texts = writeTexts(`caller ${caller}`, count).map((text, i) =>
        i % 2 ? text : `${text} ${round}`,
      );
      const leaving = new AbortController();
      const left = post(stack, account, texts, leaving.signal).then(
        (response) => response.arrayBuffer(),
        () => undefined,
      );
      const [answer] = await Promise.all([
        askForVectors(stack, account, 'emb', texts),
        new Promise((resolve) => setImmediate(resolve)).then(() => leaving.abort()),
      ]);
      checkVectors(t, answer, texts);
      await left?.catch(() => undefined);
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

test('while one account does not read its answers another’s are given, and the first goes on when it reads', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  // Room for two answers of 12 MB, of which an account has one. No socket takes as much.
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
  checkVectors(t, await askForVectors(stack, other, 'emb', texts), texts);
  const inputs = vendor.requests.entries.flatMap(({ body }) => (body as { input: string[] }).input);
  t.is(inputs.length, 2 * texts.length, 'the second was not asked for yet');
  await unread.arrayBuffer();
  t.is((await second).status, 200);
  await (await second).arrayBuffer();
});
