import { randomUUID } from 'node:crypto';
import { request as requestHttp } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { changeAccount } from '../../shared/account-changes/change-account.ts';
import { HotAccountStore } from '../../shared/billing/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { startEndlessVendor } from '../support/endless-vendor.ts';
import { findReservations, findRow, readLoss, waitForNoReservation } from '../support/observe.ts';
import { parseSse, readSse, type SseEvents } from '../support/sse-events.ts';
import { startStack, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

/** A ban ends what its account has under way, whatever state it is in. The vendors that are asked wait for the test. */

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
  /** All of it, once it has ended. */
  readonly read: () => Promise<SseEvents>;
}

/** A stream of which the first output has come. */
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

function isBannedEnd(t: ExecutionContext, { events, isDone }: SseEvents): void {
  t.is(events.at(-1)?.error?.code, 'account_banned');
  t.false(isDone);
}

test('a running stream ends with an error event, pays for what was generated until then, and others go on', async (t) => {
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const body = { ...createChat('drip-chat', true), messages: [{ role: 'user', content: 'a b c d e f g h' }] };
  const [stream, innocent] = [await openStream(account), await openStream(other, { body })];
  await ban(account);
  const heard = await stream.read();
  isBannedEnd(t, heard);
  await waitForNoReservation(stack, account.id);
  const row = await findRow(stack, stream.requestId);
  t.like(row, { success: false, responseCode: 403, errorCode: 'account_banned' });
  t.true(row.completionTokens > 0);
  t.true(row.completionTokens < 400, 'no more than was generated');
  const expected = BigInt(row.promptTokens) * 7_000_000n + BigInt(row.completionTokens) * 13_000_000n;
  t.is(await readLoss(stack, account.id, '100'), expected);
  t.true((await innocent.read()).isDone);
});

for (const { kind, path, body } of [
  { kind: 'streamed chat', path: chats, body: createChat('held-stream', true) },
  { kind: 'whole chat', path: chats, body: createChat('held-chat', false) },
  { kind: 'image', path: '/v1/images/generations', body: { model: 'held-picture', prompt: 'a red fox' } },
  { kind: 'embedding', path: '/v1/embeddings', body: { model: 'held-vectors', input: randomUUID() } },
]) {
  test(`${kind}: before any output a ban is a plain 403, and costs nothing`, async (t) => {
    const account = await stack.createAccount();
    const held = vendor.hold(body.model);
    t.teardown(() => held.end());
    const answer = stack.post(path, account.apiKey, body);
    await waitFor('the call', () => held.waiting === 1);
    await ban(account);
    const response = await answer;
    t.is(response.status, 403);
    const { error } = (await response.json()) as { error: { code: string } };
    t.is(error.code, 'account_banned');
    // The worker has ended it as well, before its vendor answers.
    await waitForNoReservation(stack, account.id);
    held.end();
    t.is(await readLoss(stack, account.id, '100'), 0n);
  });
}

test('inputs of others that share a call with those of a banned account are answered', async (t) => {
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const held = vendor.hold('shared-vectors');
  t.teardown(() => held.end());
  const input = (): object => ({ model: 'shared-vectors', input: randomUUID() });
  const answers = [account, other].map(({ apiKey }) => stack.post('/v1/embeddings', apiKey, input()));
  await waitFor('both to be admitted', async () => {
    const held = await Promise.all([account, other].map(({ id }) => findReservations(stack, id)));
    return held.flat().length === 2;
  });
  await ban(account);
  t.is((await answers[0]!).status, 403);
  held.end();
  t.is((await answers[1]!).status, 200);
});

test('what is queued without a worker ends as well, and a worker that comes later asks no vendor for it', async (t) => {
  const own = await startVendorSimulator();
  t.teardown(() => own.close());
  const idle = await useStack(t, { catalog: catalogOf(own.url), workers: [] });
  const account = await idle.createAccount();
  const answers = [
    idle.post(chats, account.apiKey, createChat('held-stream', true)),
    idle.post(chats, account.apiKey, createChat('held-chat', false), { 'idempotency-key': randomUUID() }),
    idle.post('/v1/images/generations', account.apiKey, { model: 'held-picture', prompt: 'a red fox' }),
    idle.post('/v1/embeddings', account.apiKey, { model: 'held-vectors', input: 'one' }),
  ];
  await waitFor('all of it to be queued', async () => {
    const lengths = await Promise.all(
      [redisKeys.readyQueue, '{bull}:image:wait', '{bull}:embedding:wait'].map((key) => idle.redis.llen(key)),
    );
    return lengths.reduce((a, b) => a + b, 0) === 4;
  });
  await ban(account, idle);
  for (const response of await Promise.all(answers)) {
    t.is(response.status, 403);
    t.regex(await response.text(), /"account_banned"/);
  }
  await idle.startWorker();
  await waitForNoReservation(idle, account.id);
  t.is(own.requests.counters.total, 0);
  t.is(await readLoss(idle, account.id, '100'), 0n);
});

test('a request under an Idempotency-Key ends for all its readers, and its key is free again', async (t) => {
  const account = await stack.createAccount();
  const headers = { 'idempotency-key': randomUUID() };
  const body = createChat('drip-chat', true);
  const first = await openStream(account, { headers, body });
  const second = await openStream(account, { headers, body });
  t.is(second.requestId, first.requestId);
  await ban(account);
  for (const heard of await Promise.all([first.read(), second.read()])) isBannedEnd(t, heard);
  await waitForNoReservation(stack, account.id);
  await changeAccount(openStores(stack), account.id, { banned: false, banReason: null });
  const again = await openStream(account, {
    headers,
    body: { ...body, model: 'drip-chat', messages: [{ role: 'user', content: 'another' }] },
  });
  t.not(again.requestId, first.requestId);
  t.true((await again.read()).isDone);
});

test('a stream that nobody reads ends at the vendor too', async (t) => {
  const endless = await startEndlessVendor();
  t.teardown(() => endless.close());
  const own = await useStack(t, { catalog: catalogOf(endless.url) });
  const account = await own.createAccount();
  const caller = requestHttp(`${own.url}${chats}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
  });
  t.teardown(() => caller.destroy());
  caller.on('response', (response) => response.pause());
  caller.end(JSON.stringify(createChat('drip-chat', true)));
  await endless.blocked;
  await ban(account, own);
  await t.notThrowsAsync(endless.ended);
  await waitForNoReservation(own, account.id);
});

test('a ban whose announcement was missed is found', async (t) => {
  const account = await stack.createAccount();
  const stream = await openStream(account);
  const held = vendor.hold('missed-chat');
  t.teardown(() => held.end());
  const waiting = stack.post(chats, account.apiKey, createChat('missed-chat', false));
  await waitFor('both to be admitted', async () => (await findReservations(stack, account.id)).length === 2);
  const { accounts, hotAccounts } = openStores(stack);
  await accounts.update(account.id, { banned: true, banReason: 'test' });
  await hotAccounts.update(account.id, { banned: true });
  const [heard, answer] = await Promise.all([stream.read(), waiting]);
  isBannedEnd(t, heard);
  t.is(answer.status, 403);
});

test('a caller is told although the worker of the stream is stuck, and the worker settles what it had generated', async (t) => {
  const own = await useStack(t, { catalog: catalogOf(vendor.url), workers: [] });
  const worker = await startRole(t, 'worker', own.env);
  const account = await own.createAccount();
  const stream = await openStream(account, { on: own });
  worker.child.kill('SIGSTOP');
  await ban(account, own);
  isBannedEnd(t, await stream.read());
  t.is((await findReservations(own, account.id)).length, 1);
  worker.child.kill('SIGCONT');
  await waitForNoReservation(own, account.id);
  const row = await findRow(own, stream.requestId);
  t.is(row.errorCode, 'account_banned');
  t.true(row.completionTokens > 0);
});

test('the tenth unknown code ends what the account has under way', async (t) => {
  const account = await stack.createAccount();
  const stream = await openStream(account);
  for (let i = 0; i < 10; i++) {
    await stack.post('/v1/users/redeem', account.apiKey, { code: `AAAA-BBBB-CCCC-DDDD-${1000 + i}` });
  }
  isBannedEnd(t, await stream.read());
  t.is(
    (await readSse(await stack.post(chats, account.apiKey, createChat('drip-chat', true)))).events.length,
    0,
  );
});
