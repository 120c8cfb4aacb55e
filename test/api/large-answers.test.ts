import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { askForVectors, checkVectors, writeTexts } from '../support/large-answers.ts';
import { readLoss, toNano, waitForNoReservation } from '../support/observe.ts';
import { useStack } from '../support/stack.ts';

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
    t.is(usage.prompt_tokens, texts.length * 4);
    t.is(await readLoss(stack, account.id, '100'), toNano(usage.cost_request));
  }
});
