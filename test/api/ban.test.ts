import { randomUUID } from 'node:crypto';
import { request as requestHttp } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { changeAccount } from '../../shared/accounts/change-account.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { startEndlessVendor } from '../support/endless-vendor.ts';
import { findReservations, findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { parseSse, readSse, type SseEvents } from '../support/sse-events.ts';
import { startStack, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

/**
 * A ban cancels all requests of its account, queued or running. The simulated vendors respond when the test releases
 * them.
 */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: drip-chat, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: vendor, model: gpt+drip-50 }] }
  - { id: held-stream, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: vendor, model: held-stream }] }
  - { id: held-chat, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: vendor, model: held-chat }] }
  - { id: missed-chat, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: vendor, model: missed-chat }] }
  - { id: held-vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: held-vectors }] }
  - { id: shared-vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: shared-vectors }] }
  - { id: held-picture, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: held-picture }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;

test.before(async () => {
  vendor = await startVendorSimulator();
  stack = await startStack({ catalog: catalogOf(vendor.url) });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const chats = '/v1/chat/completions';
const longText = 'the quick brown fox '.repeat(200);
const createChat = (model: string, stream: boolean) => ({
  model,
  stream,
  messages: [{ role: 'user', content: `${randomUUID()} ${longText}` }],
});

function openStores({ redis, mongo, config }: TestStack) {
  const accounts = new AccountStore(mongo.db, config);
  return { redis, accounts, hotAccounts: new HotAccountStore(redis, accounts, new LedgerStore(mongo.db)) };
}

async function ban(account: TestAccount, on = stack): Promise<void> {
  await changeAccount(openStores(on), account.id, { banned: true, banReason: 'test' });
}

interface OpenStream {
  readonly requestId: string;
  /** Reads the stream to its end. */
  readonly read: () => Promise<SseEvents>;
}

/** Opens a stream and waits for its first output. */
async function openStream(
  account: TestAccount,
  { on = stack, headers = {}, body = createChat('drip-chat', true) } = {},
): Promise<OpenStream> {
  const response = await on.post(chats, account.apiKey, body, headers);
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let text = decoder.decode((await reader.read()).value, { stream: true });
  return {
    requestId: response.headers.get('x-request-id')!,
    async read() {
      for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
        text += decoder.decode(chunk.value, { stream: true });
      }
      return parseSse(text);
    },
  };
}

function assertEndsWithBan(t: ExecutionContext, { events, isDone }: SseEvents): void {
  t.is(events.at(-1)?.error?.code, 'account_banned');
  t.false(isDone);
}

test('if an account is banned, its running stream ends with an error event, the output so far is charged, and other accounts’ streams continue', async (t) => {
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const body = { ...createChat('drip-chat', true), messages: [{ role: 'user', content: 'a b c d e f g h' }] };
  const [stream, otherStream] = [await openStream(account), await openStream(other, { body })];
  await ban(account);
  const events = await stream.read();
  assertEndsWithBan(t, events);
  await waitForNoReservation(stack, account.id);
  const row = await findRow(stack, stream.requestId);
  t.like(row, { success: false, responseCode: 403, errorCode: 'account_banned' });
  t.true(row.completionTokens > 0);
  t.true(row.completionTokens < 400, 'the charge includes only generated tokens');
  const expected = BigInt(row.promptTokens) * 7_000_000n + BigInt(row.completionTokens) * 13_000_000n;
  t.is(await readAmountCharged(stack, account.id, '100'), expected);
  t.true((await otherStream.read()).isDone);
});

for (const { kind, path, body } of [
  { kind: 'streamed chat', path: chats, body: createChat('held-stream', true) },
  { kind: 'non-streamed chat', path: chats, body: createChat('held-chat', false) },
  { kind: 'image', path: '/v1/images/generations', body: { model: 'held-picture', prompt: 'a red fox' } },
  { kind: 'embedding', path: '/v1/embeddings', body: { model: 'held-vectors', input: randomUUID() } },
]) {
  test(`${kind}: if an account is banned before any output, its caller gets a plain 403 and is not charged`, async (t) => {
    const account = await stack.createAccount();
    const vendorHold = vendor.hold(body.model);
    t.teardown(() => vendorHold.end());
    const responsePromise = stack.post(path, account.apiKey, body);
    await waitFor('the vendor call', () => vendorHold.waiting === 1);
    await ban(account);
    const response = await responsePromise;
    t.is(response.status, 403);
    const { error } = (await response.json()) as { error: { code: string } };
    t.is(error.code, 'account_banned');
    // The worker cancels the request too, before the vendor responds.
    await waitForNoReservation(stack, account.id);
    vendorHold.end();
    t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  });
}

test('if inputs of a banned account share a vendor call with those of other accounts, the others still get their embeddings', async (t) => {
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const vendorHold = vendor.hold('shared-vectors');
  t.teardown(() => vendorHold.end());
  const input = (): object => ({ model: 'shared-vectors', input: randomUUID() });
  const responses = [account, other].map(({ apiKey }) => stack.post('/v1/embeddings', apiKey, input()));
  await waitFor('both requests to be admitted', async () => {
    const reservations = await Promise.all([account, other].map(({ id }) => findReservations(stack, id)));
    return reservations.flat().length === 2;
  });
  await ban(account);
  t.is((await responses[0]!).status, 403);
  vendorHold.end();
  t.is((await responses[1]!).status, 200);
});

test('a ban cancels requests queued while there is no worker, and a worker that starts later does not call a vendor for them', async (t) => {
  const ownVendor = await startVendorSimulator();
  t.teardown(() => ownVendor.close());
  const idle = await useStack(t, { catalog: catalogOf(ownVendor.url), workers: [] });
  const account = await idle.createAccount();
  const responses = [
    idle.post(chats, account.apiKey, createChat('held-stream', true)),
    idle.post(chats, account.apiKey, createChat('held-chat', false), { 'idempotency-key': randomUUID() }),
    idle.post('/v1/images/generations', account.apiKey, { model: 'held-picture', prompt: 'a red fox' }),
    idle.post('/v1/embeddings', account.apiKey, { model: 'held-vectors', input: 'one' }),
  ];
  await waitFor('all requests to be queued', async () => {
    const lengths = await Promise.all(
      [redisKeys.readyQueue, '{bull}:image:wait', '{bull}:embedding:wait'].map((key) => idle.redis.llen(key)),
    );
    return lengths.reduce((a, b) => a + b, 0) === 4;
  });
  await ban(account, idle);
  for (const response of await Promise.all(responses)) {
    t.is(response.status, 403);
    t.regex(await response.text(), /"account_banned"/);
  }
  await idle.startWorker();
  await waitForNoReservation(idle, account.id);
  t.is(ownVendor.requests.counters.total, 0);
  t.is(await readAmountCharged(idle, account.id, '100'), 0n);
});

test('a ban ends a request with an Idempotency-Key for all its readers, and once the ban is lifted, the key can be reused', async (t) => {
  const account = await stack.createAccount();
  const headers = { 'idempotency-key': randomUUID() };
  const body = createChat('drip-chat', true);
  const first = await openStream(account, { headers, body });
  const second = await openStream(account, { headers, body });
  t.is(second.requestId, first.requestId);
  await ban(account);
  for (const events of await Promise.all([first.read(), second.read()])) assertEndsWithBan(t, events);
  await waitForNoReservation(stack, account.id);
  await changeAccount(openStores(stack), account.id, { banned: false, banReason: null });
  const again = await openStream(account, {
    headers,
    body: { ...body, model: 'drip-chat', messages: [{ role: 'user', content: 'another' }] },
  });
  t.not(again.requestId, first.requestId);
  t.true((await again.read()).isDone);
});

test('a ban also aborts the vendor call of a stream whose client does not read it', async (t) => {
  const endless = await startEndlessVendor();
  t.teardown(() => endless.close());
  const ownVendor = await useStack(t, { catalog: catalogOf(endless.url) });
  const account = await ownVendor.createAccount();
  const caller = requestHttp(`${ownVendor.url}${chats}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
  });
  t.teardown(() => caller.destroy());
  caller.on('response', (response) => response.pause());
  caller.end(JSON.stringify(createChat('drip-chat', true)));
  await endless.blocked;
  await ban(account, ownVendor);
  await t.notThrowsAsync(endless.ended);
  await waitForNoReservation(ownVendor, account.id);
});

test('a ban takes effect even if an api process missed the message about it', async (t) => {
  const account = await stack.createAccount();
  const stream = await openStream(account);
  const vendorHold = vendor.hold('missed-chat');
  t.teardown(() => vendorHold.end());
  const waiting = stack.post(chats, account.apiKey, createChat('missed-chat', false));
  await waitFor(
    'both requests to be admitted',
    async () => (await findReservations(stack, account.id)).length === 2,
  );
  const { accounts, hotAccounts } = openStores(stack);
  await accounts.update(account.id, { banned: true, banReason: 'test' });
  await hotAccounts.adopt(account.id);
  const [events, response] = await Promise.all([stream.read(), waiting]);
  assertEndsWithBan(t, events);
  t.is(response.status, 403);
});

test('if a worker is frozen, a ban still ends its streams, and the worker charges for their output once it continues', async (t) => {
  const ownVendor = await useStack(t, { catalog: catalogOf(vendor.url), workers: [] });
  const worker = await startRole(t, 'worker', ownVendor.env);
  const account = await ownVendor.createAccount();
  const stream = await openStream(account, { on: ownVendor });
  worker.child.kill('SIGSTOP');
  await ban(account, ownVendor);
  assertEndsWithBan(t, await stream.read());
  t.is((await findReservations(ownVendor, account.id)).length, 1);
  worker.child.kill('SIGCONT');
  await waitForNoReservation(ownVendor, account.id);
  const row = await findRow(ownVendor, stream.requestId);
  t.is(row.errorCode, 'account_banned');
  t.true(row.completionTokens > 0);
});

test('the tenth unknown redemption code ends the account’s running requests', async (t) => {
  const account = await stack.createAccount();
  const stream = await openStream(account);
  for (let i = 0; i < 10; i++) {
    await stack.post('/v1/users/redeem', account.apiKey, {
      code: `AAAA-BBBB-CCCC-DDDD-222${'23456789AB'[i]}`,
    });
  }
  assertEndsWithBan(t, await stream.read());
  t.is(
    (await readSse(await stack.post(chats, account.apiKey, createChat('drip-chat', true)))).events.length,
    0,
  );
});
