import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisChannels } from '../../shared/platform/redis/redis-keys.ts';
import { decodeFrames } from '../../shared/work/replies/frame.ts';
import { requestEmbeddings, checkVectors, writeTexts } from '../support/large-responses.ts';
import { readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { useStack } from '../support/stack.ts';
import { startRole } from '../support/worker-process.ts';
import { listenTo } from '../support/listen-to.ts';

test('if a worker is killed between two pieces of a response, another worker completes the interrupted responses, and each caller is charged once', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    workers: [],
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models: [{ id: emb, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb }] }]
`,
  });
  const replyChannels = (await stack.redis.call(
    'PUBSUB',
    'SHARDCHANNELS',
    redisChannels.reply('*'),
  )) as string[];
  const spy = await listenTo(t, stack.config.redisUrl, ...replyChannels);
  const worker = await startRole(t, 'worker', stack.env);
  // An api process requests at most 6 MB of a result at a time. Each result is larger, so one piece does not complete it.
  const killAfterPiece = async (): Promise<void> => {
    const hasPiece = (message: Buffer): boolean => decodeFrames(message).some(({ kind }) => kind === 'piece');
    while (!hasPiece(await spy.receive()));
    await worker.kill();
  };
  const killed = killAfterPiece();
  const callers = await Promise.all(
    ['ann', 'bob'].map(async (name) => ({
      account: await stack.createAccount(),
      texts: writeTexts(name, 1_300),
    })),
  );
  const responses = Promise.all(
    callers.map(({ account, texts }) => requestEmbeddings(stack, account, 'emb', texts)),
  );
  await killed;
  await startRole(t, 'worker', stack.env);
  for (const [i, response] of (await responses).entries()) {
    const { account, texts } = callers[i]!;
    checkVectors(t, response, texts);
    const { cost_request: cost } = response.body.usage;
    t.true(cost > 0);
    await waitForNoReservation(stack, account.id);
    t.is(await readAmountCharged(stack, account.id, '100'), toNano(cost));
  }
  const inputs = vendor.requests.entries.flatMap(({ body }) => (body as { input: string[] }).input);
  t.true(inputs.length > new Set(inputs).size, 'the second worker sends some of the same inputs again');
});
