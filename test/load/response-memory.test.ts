import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import sharp from 'sharp';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { requestEmbeddings, checkVectors, writeTexts } from '../support/large-responses.ts';
import { findReservations, readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { chatWithUsage, startScriptedVendor } from '../support/scripted-vendor.ts';
import { allQueues, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import type { WorkerOptions } from '../../workers/worker.ts';
import { waitFor } from '../support/wait-for.ts';

/** What happens when memory for responses runs out: which requests wait for memory, and which callers lose theirs. */

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

async function readRejection(responsePromise: Promise<Response>): Promise<string> {
  const response = await responsePromise;
  const { error } = (await response.json()) as { error: { code: string } };
  return `${response.status} ${error.code}`;
}

/**
 * Long enough that no client is disconnected for being slow on a busy machine. Clients that hold memory for which
 * others wait are disconnected after a tenth of it.
 */
const maxStallMs = 90_000;

test('requests that would not be admitted do not wait for memory, and those that wait reserve no money', async (t) => {
  // Enough for one response of 200 vectors at a time.
  const stack = await useStack(t, {
    catalog: catalogOf(vendor.url),
    api: { responseMemoryBytes: 2_000_000 },
  });
  const [holder, pending, banned] = [
    await stack.createAccount(),
    await stack.createAccount({ rpm: 10 }),
    await stack.createAccount(),
  ];
  const unfunded = await stack.createAccount({ balance: '0.000001' });
  const limited = await stack.createAccount({ rpm: 1 });
  t.is((await post(stack, limited, 'emb', ['cat'])).status, 200);
  await stack.redis.hset(redisKeys.account(banned.id), 'ban', '1');
  const vendorHold = vendor.hold('emb-held');
  t.teardown(() => vendorHold.end());
  const texts = writeTexts('text', 200);
  const first = requestEmbeddings(stack, holder, 'held', texts);
  await waitFor('the vendor call', () => vendorHold.waiting > 0);
  let hasResponded = false;
  const second = post(stack, pending, 'emb', texts).finally(() => {
    hasResponded = true;
  });
  const rejections = await Promise.all(
    [unfunded, limited, banned].map((account) => readRejection(post(stack, account, 'emb', texts))),
  );
  t.deepEqual(rejections, ['402 insufficient_balance', '429 rate_limit_exceeded', '403 account_banned']);
  t.false(hasResponded);
  t.deepEqual(await findReservations(stack, pending.id), []);
  vendorHold.end();
  checkVectors(t, await first, texts);
  const response = await second;
  t.is(response.headers.get('x-ratelimit-remaining-requests'), '9', 'admitted twice, but counted once');
  const { usage } = (await response.json()) as { usage: { cost_request: number } };
  await waitForNoReservation(stack);
  t.is(await readAmountCharged(stack, pending.id, '100'), toNano(usage.cost_request));
  t.is(await readAmountCharged(stack, unfunded.id, '0.000001'), 0n);
});

test('unread responses are interrupted if another account waits, starting with the account that holds the most memory', async (t) => {
  // Enough for three responses of 2000 vectors and slightly less than a fourth; no socket buffers as much as one.
  const stack = await useStack(t, {
    catalog: catalogOf(vendor.url),
    api: { responseMemoryBytes: 49_300_000, maxStallMs },
  });
  const [heavyAccount, lightAccount, caller] = [
    await stack.createAccount(),
    await stack.createAccount(),
    await stack.createAccount(),
  ];
  const texts = writeTexts('text', 2_000);
  const unreadResponses = await Promise.all([0, 1].map(() => post(stack, heavyAccount, 'emb', texts)));
  const lightResponse = await post(stack, lightAccount, 'emb', texts);
  const callerTexts = writeTexts('text', 2_048);
  checkVectors(t, await requestEmbeddings(stack, caller, 'emb', callerTexts), callerTexts);
  const outcomes = await Promise.allSettled(unreadResponses.map((response) => response.arrayBuffer()));
  t.true(outcomes.some(({ status }) => status === 'rejected'));
  // If the two responses had been interrupted because of the maximum stall time, this one would have been as well.
  t.true((await lightResponse.arrayBuffer()).byteLength > 2_000 * 1536 * 4);
});

/** The side in pixels of one of the four images of a response: 3 MB each. */
const partSide = 1_000;
/** A third of a chat response of the same total size. */
const partText = 'x'.repeat(4_000_000);

/** Starts a vendor with large responses, and a process with memory for two of 12 MB. */
async function startWithLargeResponses(t: ExecutionContext, workers: WorkerOptions[] = [allQueues]) {
  const prompts: unknown[] = [];
  // Noise does not get smaller when the image is encoded again.
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
    const response = chatWithUsage({ prompt_tokens: 5, completion_tokens: 100 }) as ChatBody;
    response.choices[0]!.message.content = partText.repeat(3);
    return response;
  });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    // No client may be disconnected in these tests, even if the machine is slow.
    api: { responseMemoryBytes: 26_000_000, maxStallMs: 10 * maxStallMs },
    workers,
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1" } }
models:
  - { id: image, type: image, context: 8192, size: [1024x1024, 2048x2048], pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: image }] }
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: chat }] }
`,
  });
  return { stack, prompts };
}

interface ChatBody {
  readonly choices: { readonly message: { content: string } }[];
}

const hasImages = (body: unknown, count: number): boolean =>
  (body as { data: { b64_json: string }[] }).data.length === count;

const kinds = [
  {
    kind: 'images',
    path: '/v1/images/generations',
    body: { model: 'image', prompt: 'a fox', n: 4 },
    check: (body: unknown) => hasImages(body, 4),
  },
  {
    kind: 'non-streamed chats',
    path: '/v1/chat/completions',
    body: { model: 'chat', messages: [{ role: 'user', content: 'draw' }], max_tokens: 100 },
    check: (body: unknown) => (body as ChatBody).choices[0]!.message.content.length === 3 * partText.length,
  },
];

for (const { kind, path, body, check } of kinds) {
  test(`if an account does not read its responses to ${kind}, its worker holds them back, and other accounts get theirs`, async (t) => {
    const { stack } = await startWithLargeResponses(t);
    const [slow, other] = [await stack.createAccount(), await stack.createAccount()];
    let startedCount = 0;
    const cancelling = new AbortController();
    const unread = Array.from({ length: 4 }, async (_, i) => {
      const response = await postWithSignal(stack, slow, path, body, i === 3 ? cancelling.signal : null);
      startedCount += 1;
      return response;
    });
    unread[3]!.catch(() => undefined);
    await waitFor('the responses to be charged', async () => {
      return startedCount > 0 && (await findReservations(stack, slow.id)).length === 0;
    });
    for (let i = 0; i < 2; i++) {
      const response = await stack.post(path, other.apiKey, body);
      t.true(check(await response.json()));
    }
    t.is(startedCount, 1, 'an account may use half of the memory');
    // The cancelled request frees its memory, and the others get their responses one after another as they are
    // read.
    cancelling.abort();
    const read = unread.slice(0, 3).map(async (one) => check(await (await one).json()));
    t.deepEqual(await Promise.all(read), [true, true, true]);
    await waitForNoReservation(stack);
    t.is(
      (await readAmountCharged(stack, slow.id, '100')) * 2n,
      (await readAmountCharged(stack, other.id, '100')) * 4n,
    );
  });
}

const postWithSignal = (
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

test('while a worker holds unread responses of an account, it starts no vendor calls for that account, but does for others', async (t) => {
  // One account's share of this is enough for a response of 12 MB, or for a request whose response may be as large.
  const { stack, prompts } = await startWithLargeResponses(t, [
    { ...allQueues, responseMemoryBytes: 30_000_000 },
  ]);
  const [slow, other] = [await stack.createAccount(), await stack.createAccount()];
  const draw = (account: TestAccount, prompt: string, signal: AbortSignal | null = null): Promise<Response> =>
    postWithSignal(
      stack,
      account,
      '/v1/images/generations',
      { model: 'image', prompt, size: '2048x2048' },
      signal,
    );
  const listSlowPrompts = (): string[] =>
    [...new Set(prompts.filter((prompt) => prompt !== 'other'))].map(String).toSorted();
  // The api process holds one response, and the worker holds another.
  const unread = [draw(slow, 'read 0'), draw(slow, 'read 1')];
  await waitFor('two requests to be charged', async () => {
    return prompts.length === 2 && (await findReservations(stack, slow.id)).length === 0;
  });
  const cancelling = new AbortController();
  const cancelled = draw(slow, 'left', cancelling.signal);
  unread.push(draw(slow, 'read 2'), draw(slow, 'read 3'));
  await waitFor('three requests to wait', async () => (await findReservations(stack, slow.id)).length === 3);
  for (let i = 0; i < 3; i++) t.true(hasImages(await (await draw(other, 'other')).json(), 1));
  t.deepEqual(listSlowPrompts(), ['read 0', 'read 1']);
  cancelling.abort();
  await t.throwsAsync(cancelled, { any: true });
  await waitFor('the cancelled request to be released', async () => {
    return (await findReservations(stack, slow.id)).length === 2;
  });
  const read = unread.map(async (one) => hasImages(await (await one).json(), 1));
  t.deepEqual(await Promise.all(read), [true, true, true, true]);
  await waitForNoReservation(stack);
  t.deepEqual(listSlowPrompts(), ['read 0', 'read 1', 'read 2', 'read 3']);
  t.is(prompts.length, 4 + 3, 'no vendor call is repeated');
  t.is(await readAmountCharged(stack, slow.id, '100'), 4_000_000_000n);
});
