import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import {
  findReservations,
  findRow,
  readAmountCharged,
  toNano,
  waitForNoReservation,
} from '../support/observe.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { waitUntilCancelled } from '../support/wait-until-cancelled.ts';

/** Images through HTTP, with a vendor that draws single-colour squares. */

const key = 'sk-vendor-key-0123456789';
const imageModel = (id: string, vendorModel: string, pricing: string, more = ''): string =>
  `  - { id: ${id}, type: image, context: 8192, size: [512x512, 1024x1024], max_image_count: 4, ${more} pricing: ${pricing}, routes: [{ upstream: vendor, model: "${vendorModel}" }] }`;
const perImage = '{ type: image, cost_per_image: 1.23 }';

const catalogOf = (vendorUrl: string): string => `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [${key}] }
  hasty: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [${key}], timeoutMs: 300 }
  brisk: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [${key}], timeoutMs: 2000 }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [${key}], maxConcurrency: 1 }
models:
${imageModel('plain', 'gpt-image-sim', perImage)}
  - id: by-quality
    type: image
    context: 8192
    size: [512x512, 1024x1024]
    image_quality: { default: medium, choices: [low, medium, high] }
    pricing:
      type: image
      cost_per_image: 9.9
      cost_per_image_quality:
        low: 0.1
        medium: { 512x512: 0.37, 1024x1024: 1.01 }
    routes: [{ upstream: vendor, model: gpt-image-quality }]
${imageModel('by-request', 'gpt-image-request', '{ type: request, cost_per_request: 0.77 }')}
${imageModel('by-character', 'gpt-image-characters', '{ type: characters, cost_per_million: 1000 }')}
${imageModel('by-time', 'gpt-image-time+slow-200', '{ type: time, cost_per_second: 1 }')}
${imageModel('free', 'gpt-image-free', '{ type: image, cost_per_image: 1.23, free_requests: true }')}
${imageModel('failing', 'gpt-image-x+fail-500', perImage)}
${imageModel('refusing', 'gpt-image-y+fail-400+echokey', perImage)}
${imageModel('garbling', 'gpt-image-z+garbage', perImage)}
${imageModel('slow', 'gpt-image-slow', perImage)}
${imageModel('slow-failing', 'gpt-image-w+fail-500', perImage)}
${imageModel('slow-free', 'gpt-image-gratis', '{ type: image, cost_per_image: 1.23, free_requests: true }')}
  - { id: one-by-one, type: image, context: 8192, pricing: ${perImage}, routes: [{ upstream: narrow, model: gpt-image-alone }] }
  - { id: late, type: image, context: 8192, pricing: ${perImage}, routes: [{ upstream: hasty, model: gpt-image-late+slow-3000 }] }
  - id: dawdling
    type: image
    context: 8192
    max_image_count: 4
    pricing: { type: image, cost_per_image: 20, free_requests: true }
    routes:
      - { upstream: brisk, model: gpt-image-dawdling+slow-20000, weight: 100000 }
      - { upstream: vendor, model: gpt-image-prompt, weight: 0.001 }
  - id: time-after-failure
    type: image
    context: 8192
    pricing: { type: time, cost_per_second: 1 }
    routes:
      - { upstream: vendor, model: gpt-image-first+slow-700+fail-500, weight: 100000 }
      - { upstream: vendor, model: gpt-image-second, weight: 0.001 }
  - { id: small-only, type: image, context: 8192, size: [256x256], pricing: ${perImage}, routes: [{ upstream: builtin, model: demo-svg-image }] }
`;

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

interface ImageResponse {
  readonly id: string;
  readonly created: number;
  readonly data: readonly {
    readonly revised_prompt: string | null;
    readonly b64_json: string | null;
    readonly url: string | null;
  }[];
  readonly usage: {
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly total_tokens: number;
    readonly total_time: number;
    readonly cost_request: number;
    readonly free_request: boolean;
  };
  readonly error: { readonly code: string; readonly message: string };
}

async function draw(
  account: TestAccount,
  model: string,
  more: object = {},
): Promise<{ status: number; result: ImageResponse; requestId: string }> {
  const body = { model, prompt: 'a red boat', ...more };
  const response = await stack.post('/v1/images/generations', account.apiKey, body);
  const result = (await response.json()) as ImageResponse;
  return { status: response.status, result, requestId: response.headers.get('x-request-id')! };
}

const findRequestsTo = (vendorModel: string): readonly LoggedRequest[] =>
  vendor.requests.entries.filter((entry) => entry.model === vendorModel);

test('a response has the fields of the specification, and base64 by default', async (t) => {
  const account = await stack.createAccount();
  const { status, result, requestId } = await draw(account, 'plain', { n: 3 });
  t.is(status, 200, JSON.stringify(result).slice(0, 300));
  t.deepEqual(Object.keys(result).sort(), ['created', 'data', 'id', 'usage']);
  t.is(result.id, requestId);
  t.true(Math.abs(result.created - Date.now() / 1_000) < 5);
  t.is(result.data.length, 3);
  t.is(new Set(result.data.map((image) => image.b64_json)).size, 3);
  for (const image of result.data) {
    t.deepEqual(Object.keys(image).sort(), ['b64_json', 'revised_prompt', 'url']);
    t.is(Buffer.from(image.b64_json!, 'base64').toString('latin1', 1, 4), 'PNG');
    t.is(image.url, null);
    t.is(image.revised_prompt, 'A picture of: a red boat');
  }
  t.deepEqual(Object.keys(result.usage).sort(), [
    'cost_request',
    'free_request',
    'input_tokens',
    'input_tokens_details',
    'output_tokens',
    'total_time',
    'total_tokens',
  ]);
  const { input_tokens: input, output_tokens: output, total_tokens: total } = result.usage;
  t.is(total, input + output);
  t.is(result.usage.cost_request, 3.69);
  t.false(result.usage.free_request);
  t.is(await readAmountCharged(stack, account.id, '100'), 3_690_000_000n);
  t.like(await findRow(stack, requestId), {
    success: true,
    responseCode: 200,
    model: 'plain',
    images: 3,
    imageSize: '1024x1024',
    costNano: 3_690_000_000n,
  });
});

test('links serve the images with their actual content type', async (t) => {
  const account = await stack.createAccount();
  const { result } = await draw(account, 'plain', { n: 2, response_format: 'url' });
  const links = result.data.map((image) => image.url!);
  t.is(new Set(links).size, 2);
  for (const [i, link] of links.entries()) {
    t.is(result.data[i]?.b64_json, null);
    t.true(link.startsWith(`${stack.url}/files/`));
    const response = await fetch(link);
    t.is(response.headers.get('content-type'), 'image/png');
    t.is(response.headers.get('x-content-type-options'), 'nosniff');
    t.is(Buffer.from(await response.arrayBuffer()).toString('latin1', 1, 4), 'PNG');
  }
});

test('an unknown file name is a 404, and cannot escape the folder', async (t) => {
  for (const name of ['x.png', `${'a'.repeat(43)}.png`, '..%2f..%2fetc%2fpasswd', `${'a'.repeat(43)}.html`]) {
    t.is((await fetch(`${stack.url}/files/${name}`)).status, 404, name);
  }
});

for (const [title, more, cost] of [
  ['the default quality and size', {}, 1_010_000_000n],
  ['another size', { size: '512x512' }, 370_000_000n],
  ['a quality with one price for all sizes', { quality: 'low' }, 100_000_000n],
  ['a quality without a separate price', { quality: 'high' }, 9_900_000_000n],
  ['two images of another size', { size: '512x512', n: 2 }, 740_000_000n],
] as const) {
  test(`the price by quality and size is right for ${title}`, async (t) => {
    const account = await stack.createAccount();
    const { result, requestId } = await draw(account, 'by-quality', more);
    t.is(toNano(result.usage.cost_request), cost);
    t.is(await readAmountCharged(stack, account.id, '100'), cost);
    const row = await findRow(stack, requestId);
    t.is(row.imageQuality, 'quality' in more ? more.quality : 'medium');
    t.is(row.imageSize, 'size' in more ? more.size : '1024x1024');
  });
}

test('prices per request and per character are charged as configured', async (t) => {
  const account = await stack.createAccount();
  t.is((await draw(account, 'by-request', { n: 2 })).result.usage.cost_request, 0.77);
  t.is((await draw(account, 'by-character', { prompt: 'x'.repeat(50) })).result.usage.cost_request, 0.05);
});

test.serial('a price per second is billed for the vendor’s response time', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const { result } = await draw(account, 'by-time');
  t.true(
    result.usage.cost_request >= 0.195 && result.usage.cost_request < 0.6,
    String(result.usage.cost_request),
  );
});

test.serial('a price per second does not include the failed attempt on another route', async (t) => {
  const account = await stack.createAccount({ balance: '1000' });
  const { status, result } = await draw(account, 'time-after-failure');
  t.is(status, 200);
  t.true(
    result.usage.cost_request < 0.5,
    `charged for ${result.usage.cost_request} s, 0.7 s of them for a failed attempt`,
  );
});

test('number, size and quality reach the vendor', async (t) => {
  const account = await stack.createAccount();
  await draw(account, 'by-quality', { n: 2, size: '512x512', quality: 'low', user: 'u-5' });
  const sent = findRequestsTo('gpt-image-quality').find((one) => one.body?.['user'] === 'u-5');
  t.like(sent?.body, { prompt: 'a red boat', n: 2, size: '512x512', quality: 'low' });
});

test('without a size, a model that does not support 1024x1024 uses its first size', async (t) => {
  const account = await stack.createAccount();
  const { result, requestId } = await draw(account, 'small-only');
  t.is(Buffer.from(result.data[0]!.b64_json!, 'base64').readUInt32BE(16), 256);
  t.is((await findRow(stack, requestId)).imageSize, '256x256');
});

test('free requests are used before the balance, and are given back if the vendor fails', async (t) => {
  const account = await stack.createAccount({ freeRequests: 1 });
  t.like((await draw(account, 'free', { n: 4 })).result.usage, { free_request: true, cost_request: 0 });
  t.like((await draw(account, 'free')).result.usage, { free_request: false, cost_request: 1.23 });
  const other = await stack.createAccount({ freeRequests: 1 });
  t.is((await draw(other, 'failing')).status, 502);
  t.is((await stack.readAccount(other.id)).freeRequests, 1);
});

test('if the balance covers only three images, a request for four is a 402', async (t) => {
  const account = await stack.createAccount({ balance: '4' });
  const { status, result } = await draw(account, 'plain', { n: 4 });
  t.is(status, 402);
  t.is(result.error.code, 'insufficient_balance');
  t.is((await draw(account, 'plain', { n: 3 })).status, 200);
  t.is(await readAmountCharged(stack, account.id, '4'), 3_690_000_000n);
});

for (const [model, status, code] of [
  ['failing', 502, 'upstream_error'],
  ['garbling', 502, 'upstream_error'],
  ['refusing', 400, 'upstream_rejected'],
  ['late', 504, 'upstream_timeout'],
] as const) {
  test(`if the vendor call fails (model "${model}"), the caller gets a ${status} ${code} without secrets and is not charged`, async (t) => {
    const account = await stack.createAccount();
    const { status: actualStatus, result, requestId } = await draw(account, model, { size: '1024x1024' });
    t.is(actualStatus, status);
    t.is(result.error.code, code);
    t.false(JSON.stringify(result).includes('sk-'));
    t.like(await findRow(stack, requestId), {
      success: false,
      responseCode: status,
      costNano: 0n,
      images: 0,
    });
    t.is(await readAmountCharged(stack, account.id, '100'), 0n);
    await waitForNoReservation(stack, account.id);
  });
}

test('images that time out are not retried on any route, because their vendor may still be drawing them', async (t) => {
  const account = await stack.createAccount({ freeRequests: 1 });
  for (const [n, subject, advice] of [
    [4, '4 images', 'Request fewer images at once, a smaller size or a lower quality'],
    [1, 'this image', 'Request a smaller size or a lower quality'],
  ] as const) {
    const before = findRequestsTo('gpt-image-dawdling+slow-20000').length;
    const { status, result, requestId } = await draw(account, 'dawdling', { n });
    t.is(status, 504);
    const message = `The model took too long to generate ${subject}. You are not charged. ${advice}: the same request would most likely time out again.`;
    t.like(result.error, { code: 'upstream_timeout', message });
    // On a busy machine, the vendor may read the call after it timed out.
    await waitFor('the call', () => findRequestsTo('gpt-image-dawdling+slow-20000').length > before);
    t.is(findRequestsTo('gpt-image-dawdling+slow-20000').length, before + 1);
    t.like(await findRow(stack, requestId), {
      errorCode: 'upstream_timeout',
      responseCode: 504,
      details: message,
      costNano: 0n,
      images: 0,
    });
  }
  t.is(findRequestsTo('gpt-image-prompt').length, 0);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  await waitForNoReservation(stack, account.id);
  t.is((await stack.readAccount(account.id)).freeRequests, 1);
});

/** Sends a request, and disconnects when `disconnect()` is called. */
function drawAndDisconnect(
  account: TestAccount,
  model: string,
  more: object,
): { disconnect(): Promise<void> } {
  const caller = new AbortController();
  const outcome = fetch(`${stack.url}/v1/images/generations`, {
    method: 'POST',
    signal: caller.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model, prompt: 'a slow boat', ...more }),
  }).then(
    () => 'responded',
    () => 'disconnected',
  );
  return {
    async disconnect() {
      caller.abort();
      if ((await outcome) !== 'disconnected') throw new Error('the response arrived before the disconnect');
    },
  };
}

const countReserved = async ({ id }: TestAccount): Promise<number> =>
  (await findReservations(stack, id)).length;

const readRows = async ({ id }: TestAccount): Promise<RequestLogDocument[]> =>
  await stack.mongo.db.collection<RequestLogDocument>('request_logs').find({ accountId: id }).toArray();

test('if callers of forty images disconnect just before the end, the images are made and charged, but not stored', async (t) => {
  const account = await stack.createAccount();
  const vendorHold = vendor.hold('gpt-image-slow');
  t.teardown(() => vendorHold.end());
  const callers = Array.from({ length: 10 }, () =>
    drawAndDisconnect(account, 'slow', { n: 4, response_format: 'url' }),
  );
  const calls = (): readonly LoggedRequest[] => findRequestsTo('gpt-image-slow');
  await waitFor('all vendor calls to be made', () => vendorHold.waiting === 10);
  await waitUntilCancelled(t, stack, account, () =>
    Promise.all(callers.map((caller) => caller.disconnect())),
  );
  vendorHold.end();
  await waitForNoReservation(stack, account.id);
  t.false(calls().some(({ isAborted }) => isAborted));
  t.is(await readAmountCharged(stack, account.id, '100'), 40n * 1_230_000_000n);
  const rows = await waitFor('the log rows', async () => {
    const found = await readRows(account);
    return found.length === 10 && found;
  });
  for (const row of rows) {
    t.like(row, {
      success: false,
      responseCode: 499,
      errorCode: 'job_cancelled',
      images: 4,
      costNano: 4n * 1_230_000_000n,
    });
  }
});

test('if the caller disconnects before a vendor was called, it is not charged, and no vendor is called', async (t) => {
  const account = await stack.createAccount();
  const vendorHold = vendor.hold('gpt-image-alone');
  const first = drawAndDisconnect(account, 'one-by-one', {});
  await waitFor('the vendor to be called', () => vendorHold.waiting === 1);
  const second = drawAndDisconnect(account, 'one-by-one', { n: 4 });
  await waitFor('the second request to be admitted', async () => (await countReserved(account)) === 2);
  await second.disconnect();
  await waitFor('the second reservation to be released', async () => (await countReserved(account)) === 1);
  await first.disconnect();
  vendorHold.end();
  await waitForNoReservation(stack, account.id);
  t.is(findRequestsTo('gpt-image-alone').length, 1);
  t.is(await readAmountCharged(stack, account.id, '100'), 1_230_000_000n);
});

test('if the vendor fails after the caller has disconnected, the request is not charged and not retried', async (t) => {
  const account = await stack.createAccount();
  const vendorHold = vendor.hold('gpt-image-w+fail-500');
  t.teardown(() => vendorHold.end());
  const caller = drawAndDisconnect(account, 'slow-failing', { n: 4 });
  const isOurRequest = ({ model }: LoggedRequest): boolean => model === 'gpt-image-w+fail-500';
  await vendor.requests.waitFor(isOurRequest);
  await waitUntilCancelled(t, stack, account, () => caller.disconnect());
  vendorHold.end();
  await vendor.requests.waitFor((one) => isOurRequest(one) && one.isOver);
  await waitForNoReservation(stack, account.id);
  t.is(findRequestsTo('gpt-image-w+fail-500').length, 1);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  const [row] = await waitFor('the log row', async () => {
    const found = await readRows(account);
    return found.length > 0 && found;
  });
  t.like(row, { errorCode: 'job_cancelled', images: 0, costNano: 0n });
});

test('if the caller disconnects after a vendor was called, the free request is used up', async (t) => {
  const account = await stack.createAccount({ freeRequests: 1 });
  const vendorHold = vendor.hold('gpt-image-gratis');
  t.teardown(() => vendorHold.end());
  const caller = drawAndDisconnect(account, 'slow-free', {});
  await vendor.requests.waitFor(({ model }) => model === 'gpt-image-gratis');
  await waitUntilCancelled(t, stack, account, () => caller.disconnect());
  vendorHold.end();
  await waitForNoReservation(stack, account.id);
  const { freeRequests } = await stack.readAccount(account.id);
  t.is(freeRequests, 0);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

test('if a vendor reads the prompt once per image, the reservation includes it once per image', async (t) => {
  const geminiStack = await useStack(t, {
    catalog: `
upstreams: { google: { kind: gemini, baseUrl: "http://127.0.0.1:9", apiKeys: [k] } }
models:
  - id: painter
    type: image
    context: 8192
    max_image_count: 4
    pricing: { prompt: 1000000, completion: 0 }
    routes: [{ upstream: google }]
`,
  });
  const { apiKey } = await geminiStack.createAccount({ balance: '250' });
  const send = (n: number): Promise<Response> =>
    geminiStack.post('/v1/images/generations', apiKey, { model: 'painter', prompt: 'word '.repeat(99), n });
  const tooMany = await send(4);
  t.is(tooMany.status, 402);
  t.is((await send(2)).status, 502);
});
