import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { askForVectors, checkVectors, writeTexts } from '../support/large-answers.ts';
import { findReservations, readLoss, toNano, waitForNoReservation } from '../support/observe.ts';
import { answerWithUsage, startScriptedVendor } from '../support/scripted-vendor.ts';
import { allQueues, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import type { WorkerOptions } from '../../workers/worker.ts';
import { waitFor } from '../support/wait-for.ts';

/** Memory for answers runs out: who may wait for it, and who has to give it back. */

const catalogOf = (url: string): string => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}/v1" } }
models:
  - { id: emb, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: held, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.77 }, routes: [{ upstream: vendor, model: emb-held }] }
`;

let vendor: VendorSimulator;

test.before(async () => {
  vendor = await startVendorSimulator();
});
test.after.always(() => vendor.close());

const post = (stack: TestStack, { apiKey }: TestAccount, model: string, input: readonly string[]) =>
  stack.post('/v1/embeddings', apiKey, { model, input, encoding_format: 'base64' });

async function readRefusal(answer: Promise<Response>): Promise<string> {
  const response = await answer;
  const { error } = (await response.json()) as { error: { code: string } };
  return `${response.status} ${error.code}`;
}

/** Nobody is cut for being slow on a busy machine; who keeps others waiting is after a tenth of it. */
const maxStallMs = 90_000;

test('nobody waits for memory who would not be admitted, and who waits holds no money meanwhile', async (t) => {
  // One answer of 200 vectors at a time.
  const stack = await useStack(t, {
    catalog: catalogOf(vendor.url),
    api: { responseMemoryBytes: 2_000_000 },
  });
  const [holder, waiter, banned] = [
    await stack.createAccount(),
    await stack.createAccount({ rpm: 10 }),
    await stack.createAccount(),
  ];
  const poor = await stack.createAccount({ balance: '0.000001' });
  const limited = await stack.createAccount({ rpm: 1 });
  t.is((await post(stack, limited, 'emb', ['cat'])).status, 200);
  await stack.redis.hset(redisKeys.account(banned.id), 'ban', '1');
  const held = vendor.hold('emb-held');
  t.teardown(() => held.end());
  const texts = writeTexts('text', 200);
  const first = askForVectors(stack, holder, 'held', texts);
  await waitFor('the call', () => held.waiting > 0);
  let isAnswered = false;
  const second = post(stack, waiter, 'emb', texts).finally(() => {
    isAnswered = true;
  });
  const refusals = await Promise.all(
    [poor, limited, banned].map((account) => readRefusal(post(stack, account, 'emb', texts))),
  );
  t.deepEqual(refusals, ['402 insufficient_balance', '429 rate_limit_exceeded', '403 account_banned']);
  t.false(isAnswered);
  t.deepEqual(await findReservations(stack, waiter.id), []);
  held.end();
  checkVectors(t, await first, texts);
  const response = await second;
  t.is(response.headers.get('x-ratelimit-remaining-requests'), '9', 'asked twice, it counts once');
  const { usage } = (await response.json()) as { usage: { cost_request: number } };
  await waitForNoReservation(stack);
  t.is(await readLoss(stack, waiter.id, '100'), toNano(usage.cost_request));
  t.is(await readLoss(stack, poor.id, '0.000001'), 0n);
});

test('answers that nobody reads are cut for another account that waits, those of whoever holds most', async (t) => {
  // Room for three answers of 2000 vectors and a little less than a fourth; no socket takes as much as one.
  const stack = await useStack(t, {
    catalog: catalogOf(vendor.url),
    api: { responseMemoryBytes: 49_300_000, maxStallMs },
  });
  const [hoarder, modest, caller] = [
    await stack.createAccount(),
    await stack.createAccount(),
    await stack.createAccount(),
  ];
  const texts = writeTexts('text', 2_000);
  const hoarded = await Promise.all([0, 1].map(() => post(stack, hoarder, 'emb', texts)));
  const kept = await post(stack, modest, 'emb', texts);
  const wanted = writeTexts('text', 2_048);
  checkVectors(t, await askForVectors(stack, caller, 'emb', wanted), wanted);
  const cut = await Promise.allSettled(hoarded.map((response) => response.arrayBuffer()));
  t.true(cut.some(({ status }) => status === 'rejected'));
  // After the longest stall this one would have been cut as well.
  t.true((await kept.arrayBuffer()).byteLength > 2_000 * 1536 * 4);
});

/** Of one picture, of which an answer has four: 3 MB. */
const partSide = 1_000;
/** A third of a chat, which is as large. */
const partText = 'x'.repeat(4_000_000);

/** A vendor of large answers, and a process with room for two of 12 MB. */
async function startWithLargeAnswers(t: ExecutionContext, workers: WorkerOptions[] = [allQueues]) {
  const prompts: unknown[] = [];
  // Noise does not get smaller where it is written anew.
  const base64Of = async (side: number): Promise<string> => {
    const raw = { width: side, height: side, channels: 3 as const };
    const png = await sharp(randomBytes(side * side * 3), { raw })
      .png({ compressionLevel: 0 })
      .toBuffer();
    return png.toString('base64');
  };
  const [small, large] = await Promise.all([base64Of(partSide), base64Of(2 * partSide)]);
  const vendor = await startScriptedVendor(({ n, prompt }, path) => {
    if (path.endsWith('/images/generations')) {
      prompts.push(prompt);
      const images = n === 1 ? [large] : Array.from({ length: Number(n) }, () => small);
      return { created: 1, data: images.map((image) => ({ b64_json: image })) };
    }
    const answer = answerWithUsage({ prompt_tokens: 5, completion_tokens: 100 }) as ChatAnswer;
    answer.choices[0]!.message.content = partText.repeat(3);
    return answer;
  });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    // Nobody is to be cut here, however slow the machine is.
    api: { responseMemoryBytes: 26_000_000, maxStallMs: 10 * maxStallMs },
    workers,
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models:
  - { id: image, type: image, context: 8192, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: image }] }
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: chat }] }
`,
  });
  return { stack, prompts };
}

interface ChatAnswer {
  readonly choices: { readonly message: { content: string } }[];
}

const hasImages = (answer: unknown, count: number): boolean =>
  (answer as { data: { b64_json: string }[] }).data.length === count;

const kinds = [
  {
    kind: 'images',
    path: '/v1/images/generations',
    body: { model: 'image', prompt: 'a fox', n: 4 },
    check: (answer: unknown) => hasImages(answer, 4),
  },
  {
    kind: 'whole chats',
    path: '/v1/chat/completions',
    body: { model: 'chat', messages: [{ role: 'user', content: 'draw' }], max_tokens: 100 },
    check: (answer: unknown) =>
      (answer as ChatAnswer).choices[0]!.message.content.length === 3 * partText.length,
  },
];

for (const { kind, path, body, check } of kinds) {
  test(`answers of ${kind} that one account does not read are held by their worker, and another’s are given`, async (t) => {
    const { stack } = await startWithLargeAnswers(t);
    const [slow, other] = [await stack.createAccount(), await stack.createAccount()];
    let begun = 0;
    const leaving = new AbortController();
    const unread = Array.from({ length: 4 }, async (_, i) => {
      const response = await postUntil(stack, slow, path, body, i === 3 ? leaving.signal : null);
      begun += 1;
      return response;
    });
    unread[3]!.catch(() => undefined);
    await waitFor('the answers to be paid for', async () => {
      return begun > 0 && (await findReservations(stack, slow.id)).length === 0;
    });
    for (let i = 0; i < 2; i++) {
      const response = await stack.post(path, other.apiKey, body);
      t.true(check(await response.json()));
    }
    t.is(begun, 1, 'an account has half of what there is');
    // Whoever leaves holds nothing then, and the others get theirs one after the other as they read them.
    leaving.abort();
    const read = unread.slice(0, 3).map(async (one) => check(await (await one).json()));
    t.deepEqual(await Promise.all(read), [true, true, true]);
    await waitForNoReservation(stack);
    t.is((await readLoss(stack, slow.id, '100')) * 2n, (await readLoss(stack, other.id, '100')) * 4n);
  });
}

const postUntil = (
  stack: TestStack,
  { apiKey }: TestAccount,
  path: string,
  body: object,
  signal: AbortSignal | null,
): Promise<Response> =>
  fetch(`${stack.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  });

test('what a worker holds for an account that does not read keeps it from asking for more, and nobody else', async (t) => {
  // Of this an account alone has one answer of 12 MB, or one of which as much is expected.
  const { stack, prompts } = await startWithLargeAnswers(t, [
    { ...allQueues, responseMemoryBytes: 30_000_000 },
  ]);
  const [slow, other] = [await stack.createAccount(), await stack.createAccount()];
  const ask = (account: TestAccount, prompt: string, signal: AbortSignal | null = null): Promise<Response> =>
    postUntil(
      stack,
      account,
      '/v1/images/generations',
      { model: 'image', prompt, size: '2048x2048' },
      signal,
    );
  const promptsOfSlow = (): string[] =>
    [...new Set(prompts.filter((prompt) => prompt !== 'other'))].map(String).toSorted();
  // One is held by the api process, and one by the worker.
  const unread = [ask(slow, 'read 0'), ask(slow, 'read 1')];
  await waitFor('two that are paid for', async () => {
    return prompts.length === 2 && (await findReservations(stack, slow.id)).length === 0;
  });
  const leaving = new AbortController();
  const left = ask(slow, 'left', leaving.signal);
  unread.push(ask(slow, 'read 2'), ask(slow, 'read 3'));
  await waitFor('three that wait', async () => (await findReservations(stack, slow.id)).length === 3);
  for (let i = 0; i < 3; i++) t.true(hasImages(await (await ask(other, 'other')).json(), 1));
  t.deepEqual(promptsOfSlow(), ['read 0', 'read 1']);
  leaving.abort();
  await t.throwsAsync(left, { any: true });
  await waitFor('the one that left to be free', async () => {
    return (await findReservations(stack, slow.id)).length === 2;
  });
  const read = unread.map(async (one) => hasImages(await (await one).json(), 1));
  t.deepEqual(await Promise.all(read), [true, true, true, true]);
  await waitForNoReservation(stack);
  t.deepEqual(promptsOfSlow(), ['read 0', 'read 1', 'read 2', 'read 3']);
  t.is(prompts.length, 4 + 3, 'nothing is asked for twice');
  t.is(await readLoss(stack, slow.id, '100'), 4_000_000_000n);
});
