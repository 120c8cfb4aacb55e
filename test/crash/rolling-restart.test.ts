import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { postJson } from '../support/post-json.ts';
import { parseSse, readSse, type SseEvents } from '../support/sse-events.ts';
import type { TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkBalances, checkReceipts, verifyLedger, waitUntilQuiet } from './audit.ts';
import { checkBatches } from './batch-audit.ts';
import { BatchCaller, type BatchBody, type BatchInput } from './batch-load.ts';
import { checkJobs, waitForJobs } from './job-audit.ts';
import { JobLoad } from './job-load.ts';
import { loadCatalog, PaidLoad } from './paid-load.ts';
import { useProcessStack, type ProcessStack, type RoleVictim } from './process-stack.ts';

/** Processes that are restarted with SIGTERM, one after the other, as in an update (docs/deployment.md). */

const balance = '100000';
/** Nothing waits for the lease of a dead process, so this is far above the time that anything takes. */
const settleTimeoutMs = 60_000;
const testTimeoutMs = 6 * 60_000;
const chats = '/v1/chat/completions';
/** Of each caller, between two calls. The processes that start need the CPU. */
const pauseMs = 300;

interface Setup {
  readonly vendor: VendorSimulator;
  readonly stack: ProcessStack;
  readonly accounts: readonly TestAccount[];
  /** Refilled nano-roubles by account. */
  readonly addedNano: ReadonlyMap<string, bigint>;
}

async function setUp(t: ExecutionContext): Promise<Setup> {
  t.timeout(testTimeoutMs);
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  t.teardown(() => vendor.close());
  const stack = await useProcessStack(t, `${loadCatalog(vendor.url)}${slowModels}`);
  const accounts: TestAccount[] = [];
  for (let i = 0; i < 4; i++) {
    const account = await stack.accounts.create({ userType: 'default', requestsPerMinute: 1_000_000 });
    await stack.hotAccounts.load(account.id);
    const event = createRefillEvent(`first-${account.id}`, account.id, 'test');
    await runRefill(stack.redis, { amountNano: parseRub(balance)!, freeRequests: 0, event });
    accounts.push(account);
  }
  return { vendor, stack, accounts, addedNano: new Map(accounts.map(({ id }) => [id, parseRub(balance)!])) };
}

/** A token a second; seven chats a second; a response that is complete only after the time that a process has to stop. */
const slowModels = `  - { id: drip, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: gpt+drip-1000 }] }
  - { id: paced, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: gpt+slow-600, maxConcurrency: 4 }] }
  - { id: late, type: chat, context: 8192, max_output_tokens: 512, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: gpt+slow-40000 }] }
`;

/** Checks that every charge has a response, and that all balances agree. */
async function checkBooks(
  t: ExecutionContext,
  { stack, accounts, addedNano }: Setup,
  load: PaidLoad,
  otherCharges: readonly string[] = [],
): Promise<void> {
  await waitUntilQuiet(stack, settleTimeoutMs);
  t.deepEqual(await checkReceipts(stack, load.receipts), []);
  t.deepEqual(await checkBalances(stack, addedNano), []);
  t.deepEqual(await verifyLedger(stack, settleTimeoutMs), []);
  const known = new Set([...load.receipts.map(({ requestId }) => requestId), ...otherCharges]);
  const ids = accounts.map(({ id }) => id);
  const charges = await stack.ledger.entries
    .find({ accountId: { $in: ids }, amountNano: { $lt: 0n } })
    .toArray();
  t.deepEqual(
    charges.map(({ _id }) => _id).filter((id) => !known.has(id) && !id.startsWith('batch_')),
    [],
  );
}

/** Waits until the load has had this many further responses. */
async function waitForMore(load: PaidLoad, count = 20): Promise<void> {
  const before = load.receipts.length;
  await waitFor(
    () => `${count} further responses, ${load.receipts.length - before} so far`,
    () => load.receipts.length >= before + count,
  );
}

test.serial(
  'while workers and api processes are replaced one after the other, no request, job or batch fails, and each is charged once',
  async (t) => {
    const setup = await setUp(t);
    const { stack, accounts } = setup;
    // A balancer: it stops sending requests to an api process before that process stops.
    const urls = [...stack.urls];
    const load = new PaidLoad({ urls, accounts, pauseMs });
    const jobLoad = new JobLoad({ urls, accounts, pauseMs });
    const caller = new BatchCaller(urls);
    t.teardown(() => Promise.all([load.stop(), jobLoad.stop()]));
    load.start();
    jobLoad.start();
    const inputs = createBatches(accounts[0]!);
    for (const input of inputs) await caller.create(input);
    await waitForMore(load);

    for (const worker of stack.workers) {
      t.is(await worker.terminate(), 0, worker.name);
      await worker.restart();
      await waitForMore(load);
    }
    for (const [i, api] of stack.apis.entries()) {
      const url = stack.urls[i]!;
      urls.splice(urls.indexOf(url), 1);
      // When this call has its response, earlier calls have their connections.
      await (await fetch(`${url}/livez`, { headers: { connection: 'close' } })).text();
      t.is(await api.terminate(), 0, api.name);
      await api.restart();
      urls.push(url);
      await waitForMore(load);
    }

    await Promise.all([load.stop(), jobLoad.stop()]);
    t.deepEqual([...load.problems, ...jobLoad.problems], []);
    t.deepEqual(load.cuts, []);
    t.deepEqual([...load.outcomes.keys()], ['200']);
    t.deepEqual([...jobLoad.outcomes.keys()].toSorted(), ['200', '202']);
    await waitForJobs(stack, accounts, settleTimeoutMs);
    const [account] = accounts;
    await waitFor(
      'the batches to end',
      async () => {
        const batches = await caller.list<BatchBody>(account!, '/v1/batches');
        return batches.every(({ status }) => status === 'completed') || (await delay(200), false);
      },
      2 * settleTimeoutMs,
    );
    // Reservations of unfinished batches would be taken for those of jobs.
    t.deepEqual(await checkJobs(stack, accounts, jobLoad.tickets), []);
    t.deepEqual(
      jobLoad.tickets.filter(({ end }) => end?.status === 'failed'),
      [],
    );
    const report = await checkBatches(caller, account!, new Map(inputs.map((input) => [input.name, input])));
    t.deepEqual(report.problems, []);
    t.is(report.abandoned, 0);
    t.is(caller.retries, 0);
    await checkBooks(
      t,
      setup,
      load,
      jobLoad.tickets.map(({ id }) => id),
    );
    t.log(
      `${load.receipts.length} responses, ${jobLoad.tickets.length} jobs, ${report.lines} lines of batches`,
    );
  },
);

/** Batches that last as long as the restarts: one has many lines, the other slow ones. */
function createBatches(account: TestAccount): BatchInput[] {
  const create = (name: string, endpoint: string, bodies: readonly object[]): BatchInput => ({
    name,
    account,
    endpoint,
    isInline: false,
    lines: bodies.map((body, i) => ({ custom_id: `line-${i}`, body: { ...body } })),
  });
  const listTexts = (length: number): string[] => Array.from({ length }, (_, i) => `text ${i}`);
  return [
    create(
      'vectors',
      '/v1/embeddings',
      listTexts(1_000).map((input) => ({ model: 'embedding', input })),
    ),
    create(
      'chats',
      chats,
      listTexts(300).map((content) => ({
        model: 'paced',
        messages: [{ role: 'user', content }],
        max_tokens: 20,
      })),
    ),
  ];
}

test.serial(
  'while the only api process is restarted under load, requests fail only because their connections are refused, and nothing else is charged',
  async (t) => {
    const setup = await setUp(t);
    const { stack, accounts } = setup;
    const [api] = stack.apis;
    const load = new PaidLoad({ urls: [stack.urls[0]!], accounts, pauseMs });
    t.teardown(() => load.stop());
    load.start();
    await waitForMore(load);
    for (let i = 0; i < 2; i++) {
      t.is(await api!.terminate(), 0);
      await api!.restart();
      await waitForMore(load);
    }
    await load.stop();
    t.deepEqual(load.problems, []);
    t.deepEqual(
      [...load.outcomes.keys()].filter((outcome) => !['200', 'refused', 'reset'].includes(outcome)),
      [],
    );
    await checkBooks(t, setup, load);
  },
);

const words = (count: number): string => Array.from({ length: count }, (_, i) => `word${i}`).join(' ');

interface OpenStream {
  readonly requestId: string;
  readonly text: string;
  readonly body: Promise<string>;
  readonly read: Promise<SseEvents>;
}

/** Opens a stream of a token a second, and returns it once it has output. */
async function openStream(
  url: string,
  { apiKey }: TestAccount,
  wordCount: number,
  headers: Record<string, string> = {},
): Promise<OpenStream> {
  const content = words(wordCount);
  const request = { model: 'drip', stream: true, messages: [{ role: 'user', content }] };
  const response = await postJson(`${url}${chats}`, apiKey, request, headers);
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const body = response.text();
  return {
    requestId: response.headers.get('x-request-id')!,
    text: `You said: ${content}`,
    body,
    read: body.then(parseSse),
  };
}

/** Streams of this many words end within the time that a process has to stop, or long after it. */
const shortWords = 15;
const longWords = 45;

/** Stops a process while streams run, and checks how they end. @returns the long one */
async function checkStreams(
  t: ExecutionContext,
  victim: RoleVictim,
  open: (wordCount: number) => Promise<OpenStream>,
): Promise<SseEvents> {
  const [short, long] = await Promise.all([open(shortWords), open(longWords)]);
  const exitCode = victim.terminate();
  const ended = await short.read;
  t.true(ended.isDone);
  t.is(ended.text, short.text);
  const cut = await long.read;
  t.false(cut.isDone && cut.events.at(-1)?.error === undefined);
  t.true(long.text.startsWith(cut.text) && cut.text.length > short.text.length);
  t.is(await exitCode, 0);
  return cut;
}

test('an api process that stops completes streams of 20 s, ends longer ones with an error, and those that are stored continue at another process', async (t) => {
  const setup = await setUp(t);
  const { stack, accounts } = setup;
  const [url, otherUrl] = stack.urls as [string, string];
  const account = accounts[0]!;
  const key = { 'idempotency-key': 'the-key' };
  const late = { model: 'late', messages: [{ role: 'user', content: 'one two' }] };
  const resumable = await openStream(url, account, longWords, { 'x-on-disconnect': 'continue' });
  const keyed = postJson(`${url}${chats}`, account.apiKey, late, key);
  const cut = await checkStreams(t, stack.apis[0]!, (wordCount) => openStream(url, account, wordCount));
  t.is(cut.events.at(-1)?.error?.code, 'service_unavailable');

  const begun = await resumable.body;
  t.is(parseSse(begun).events.at(-1)?.error?.code, 'service_unavailable');
  const rest = await fetch(`${otherUrl}/v1/jobs/${resumable.requestId}/stream`, {
    headers: {
      authorization: `Bearer ${account.apiKey}`,
      'last-event-id': [...begun.matchAll(/^id: (\S+)$/gm)].at(-1)![1]!,
    },
  });
  const resumed = await readSse(rest);
  t.true(resumed.isDone);
  t.is(parseSse(begun).text + resumed.text, resumable.text);

  t.is((await keyed).status, 503);
  const replayed = await postJson(`${otherUrl}${chats}`, account.apiKey, late, key);
  t.is(replayed.status, 200);
  t.is(replayed.headers.get('idempotent-replayed'), 'true');
  t.is(replayed.headers.get('x-request-id'), (await keyed).headers.get('x-request-id'));
  await waitUntilQuiet(stack, settleTimeoutMs);
  t.deepEqual(await checkBalances(stack, setup.addedNano), []);
  t.deepEqual(await verifyLedger(stack, settleTimeoutMs), []);
});

test('a worker that stops completes streams of 20 s, and longer ones end with an error', async (t) => {
  const setup = await setUp(t);
  const { stack, accounts } = setup;
  const [worker, other] = stack.workers;
  t.is(await other!.terminate(), 0);
  const url = stack.urls[0]!;
  const cut = await checkStreams(t, worker!, (wordCount) => openStream(url, accounts[0]!, wordCount));
  t.is(cut.events.at(-1)?.error?.code, 'upstream_error');
  await Promise.all([worker!.restart(), other!.restart()]);
  await waitUntilQuiet(stack, settleTimeoutMs);
  t.deepEqual(await checkBalances(stack, setup.addedNano), []);
  t.deepEqual(await verifyLedger(stack, settleTimeoutMs), []);
});
