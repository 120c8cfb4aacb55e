import test from 'ava';
import { createRandom } from '../../scripts/vendor-simulator/faults.ts';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { findReservations, findRow, toNano, waitForNoReservation } from '../support/observe.ts';
import { parseSse } from '../support/sse-events.ts';
import { useStack, type TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { parseRub } from '../../shared/encoding/money.ts';

/** After a busy hour, the costs reported to callers are the amounts debited in Redis and in MongoDB. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 13.370001, completion: 42.42 }, routes: [{ upstream: vendor, model: gpt-sim }] }
  - { id: free-chat, type: chat, context: 8192, pricing: { prompt: 13.37, completion: 42.42, free_requests: true }, routes: [{ upstream: vendor, model: gpt-sim }] }
  - { id: flaky-chat, type: chat, context: 8192, pricing: { prompt: 0.000001, completion: 42.42, free_requests: true }, routes: [{ upstream: vendor, model: gpt-sim+flaky-60 }] }
  - { id: broken-chat, type: chat, context: 8192, pricing: { prompt: 13.37, completion: 42.42 }, routes: [{ upstream: vendor, model: gpt-sim+cut-4 }] }
  - { id: refused-chat, type: chat, context: 8192, pricing: { prompt: 13.37, completion: 42.42 }, routes: [{ upstream: vendor, model: gpt-sim+fail-400 }] }
  - { id: dear-chat, type: chat, context: 8192, pricing: { prompt: 1000000, completion: 1000000 }, routes: [{ upstream: vendor, model: gpt-sim }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536, adjustable: true }, pricing: { in_cost_per_million: 7.770003 }, routes: [{ upstream: vendor, model: emb-sim+poison }] }
  - { id: picture, type: image, context: 8192, pricing: { type: image, cost_per_image: 0.100000007 }, routes: [{ upstream: vendor, model: gpt-image-sim }] }
`;

interface SentRequest {
  readonly account: TestAccount;
  readonly status: number;
  readonly requestId: string;
  /** The cost reported to the caller; null if the response broke off before that. */
  readonly receipt: { readonly costNano: bigint; readonly free: boolean } | null;
}

const requestCount = 200;
const accountCount = 5;

test('after 200 mixed requests, reported costs, balances and the ledger agree to the nano-rouble', async (t) => {
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: catalogOf(vendor.url) });
  const random = createRandom(20_260_101);
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const words = (): string => Array.from({ length: 1 + Math.floor(random() * 30) }, () => 'cat').join(' ');
  const accounts = await Promise.all(
    Array.from({ length: accountCount }, (_, i) =>
      // The balance of the first account is so small that it runs out during the test.
      stack.createAccount({ balance: i === 0 ? '0.3' : '50', freeRequests: 4 * i, rpm: 1_000 }),
    ),
  );
  const startNano = (i: number): bigint => parseRub(i === 0 ? '0.3' : '50')!;

  const makeCall = (): readonly [path: string, body: object] => {
    const chat = (model: string, more: object = {}): readonly [string, object] => [
      '/v1/chat/completions',
      { model, messages: [{ role: 'user', content: words() }], ...more },
    ];
    const streamed = { stream: true, stream_options: { include_usage: true } };
    return pick([
      () => chat('chat'),
      () => chat('chat', streamed),
      () => chat('free-chat'),
      () => chat('free-chat', streamed),
      () => chat('flaky-chat'),
      () => chat('flaky-chat', streamed),
      () => chat('broken-chat', streamed),
      () => chat('refused-chat'),
      () => chat('dear-chat'),
      () => chat('chat', { temperature: 9 }),
      () => ['/v1/embeddings', { model: 'vectors', input: words() }] as const,
      () => ['/v1/embeddings', { model: 'vectors', input: [words(), words(), words()] }] as const,
      () => ['/v1/embeddings', { model: 'vectors', input: [words(), 'poison'] }] as const,
      () => ['/v1/embeddings', { model: 'vectors', input: [] }] as const,
      () =>
        ['/v1/images/generations', { model: 'picture', prompt: words().padEnd(3), n: pick([1, 2]) }] as const,
    ])();
  };

  async function send(): Promise<SentRequest> {
    const account = pick(accounts);
    const response = await stack.post(...spread(makeCall(), account));
    const text = await response.text();
    const isStream = (response.headers.get('content-type') ?? '').startsWith('text/event-stream');
    const usage = isStream
      ? parseSse(text).events.find((event) => event.usage)?.usage
      : (JSON.parse(text) as { usage?: Record<string, unknown> }).usage;
    const failed = { costNano: 0n, free: false };
    const receipt = usage
      ? { costNano: toNano(Number(usage['cost_request'])), free: usage['free_request'] === true }
      : response.ok
        ? null
        : failed;
    return {
      account,
      status: response.status,
      requestId: response.headers.get('x-request-id')!,
      receipt,
    };
  }
  const spread = ([path, body]: readonly [string, object], account: TestAccount) =>
    [path, account.apiKey, body] as const;

  const sent: SentRequest[] = [];
  for (let i = 0; i < requestCount; i += 25) {
    sent.push(...(await Promise.all(Array.from({ length: 25 }, send))));
  }
  await waitForNoReservation(stack);
  // A ledger stream is trimmed only once its rows and all their totals are in MongoDB, so an empty stream is done.
  for (let shard = 0; shard < shardCount; shard++) {
    await waitFor(`stream ${shard} to be processed`, async () => {
      return (await stack.redis.xlen(redisKeys.ledgerStream(shard))) === 0;
    });
  }

  const statuses = new Set(sent.map((one) => one.status));
  const inOrder = [...statuses].sort((a, b) => a - b);
  t.deepEqual(inOrder, [200, 400, 402, 422, 502], 'the requests produced all expected statuses');
  t.true(sent.some((one) => one.receipt?.free) && sent.some((one) => one.receipt === null));

  const { db } = stack.mongo;
  for (const [i, account] of accounts.entries()) {
    const ownRequests = sent.filter((one) => one.account === account);
    // A response stream that broke off reports no cost: only its log row shows it.
    const broken = await Promise.all(
      ownRequests.filter((one) => one.receipt === null).map((one) => findRow(stack, one.requestId)),
    );
    t.true(broken.every((row) => !row.success && row.costNano > 0n));
    const rows = await db
      .collection<RequestLogDocument>('request_logs')
      .find({ accountId: account.id })
      .toArray();
    // If a request is rejected for one of its parts, its caller still pays for the parts that were in other calls.
    const rejected = new Set(ownRequests.filter((one) => one.status === 400).map((one) => one.requestId));
    const chargedRejections = rows.filter((row) => rejected.has(row._id));
    const paid =
      ownRequests.reduce((sum, one) => sum + (one.receipt?.costNano ?? 0n), 0n) +
      [...broken, ...chargedRejections].reduce((sum, row) => sum + row.costNano, 0n);
    const freeUsed =
      ownRequests.filter((one) => one.receipt?.free).length +
      [...broken, ...chargedRejections].filter((row) => row.free).length;

    const hot = await stack.readAccount(account.id);
    t.is(startNano(i) - hot.balanceNano, paid, `account ${i} in Redis`);
    t.is(hot.reservedNano, 0n);
    t.is(await stack.redis.hget(redisKeys.account(account.id), 'fres'), '0');
    t.is(hot.freeRequests, 4 * i - freeUsed);
    t.true(hot.balanceNano >= 0n);

    const stored = await db.collection<{ _id: string }>('accounts').findOne({ _id: account.id });
    t.like(stored, { balanceNano: hot.balanceNano, freeRequests: hot.freeRequests });

    const entries = await db.collection('ledger').find({ accountId: account.id }).toArray();
    const sum = entries.reduce((total, entry) => total + (entry['amountNano'] as bigint), 0n);
    t.is(sum, hot.balanceNano, `account ${i}: the balance is the sum of its ledger`);
    t.is(rows.length, entries.filter((entry) => entry['kind'] === 'charge').length);
    // Exactly the requests that reached a model are logged.
    const reached = ownRequests.filter((one) => one.status !== 402);
    const logged = new Set(rows.map((row) => row._id));
    t.true(ownRequests.filter((one) => one.status === 402).every((one) => !logged.has(one.requestId)));
    t.true(
      reached
        .filter((one) => one.status !== 400 && one.status !== 422)
        .every((one) => logged.has(one.requestId)),
    );

    const days = await db.collection('daily_stats').find({ accountId: account.id }).toArray();
    t.is(
      days.reduce((total, day) => total + BigInt(String(day['costNano'])), 0n),
      paid,
    );
    t.is(
      days.reduce((total, day) => total + Number(day['requests']), 0),
      rows.length,
    );
  }

  t.deepEqual(await findReservations(stack), []);
});
