import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { countTokens } from '../../shared/catalog/count-tokens.ts';
import { findSlack } from '../../workers/embeddings/bill-call.ts';
import {
  findReservations,
  findRow,
  readAmountCharged,
  waitForQueuedInputs,
  waitForNoReservation,
} from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * What callers pay and how long they wait if they share vendor calls with other callers that disconnect, send bad
 * inputs, or send texts for which the vendor counts more tokens than the gateway.
 */

const nanoPerToken = 1_000_000n;

const modelOf = (id: string, vendorModel: string, upstream: string): string =>
  `  - { id: ${id}, type: embedding, context: 8192, dimensions: { default: 1536, adjustable: true }, pricing: { in_cost_per_million: 1000 }, routes: [{ upstream: ${upstream}, model: "${vendorModel}" }] }`;

const catalogOf = (vendorUrl: string): string => `
upstreams:
${['few', 'last', 'shared', 'both', 'dear', 'mixed', 'marks', 'timed', 'filler'].map((name) => `  ${name}: { kind: openai, baseUrl: "${vendorUrl}/v1", maxConcurrency: 1, maxBatchInputs: 50 }`).join('\n')}
  wide: { kind: openai, baseUrl: "${vendorUrl}/v1", maxConcurrency: 1 }
  two: { kind: openai, baseUrl: "${vendorUrl}/v1", maxConcurrency: 2 }
  eight: { kind: openai, baseUrl: "${vendorUrl}/v1", maxConcurrency: 8 }
models:
${modelOf('few', 'emb-few', 'few')}
${modelOf('last', 'emb-last', 'last')}
${modelOf('shared', 'emb-shared', 'shared')}
${modelOf('both', 'emb-both', 'both')}
${modelOf('dear', 'emb-dear+dear-20', 'dear')}
${modelOf('mixed', 'emb-mixed+poison', 'mixed')}
${modelOf('hiding', 'emb-hiding+dear-7', 'wide')}
${modelOf('marks', 'emb-marks+special-2', 'marks').replace('context:', 'special_tokens: 2, context:')}
${modelOf('timed', 'emb-timed', 'timed').replace('in_cost_per_million: 1000', 'type: time, cost_per_second: 0.01')}
${modelOf('filler', 'emb-filler', 'filler')}
${modelOf('turns', 'emb-turns', 'two')}
${modelOf('long', 'emb-long', 'eight')}
${modelOf('quick', 'emb-quick', 'eight')}
`;

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

const textsOf = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${name} ${i}`);

const inputsOf = (entry: LoggedRequest): string[] => (entry.body as { input: string[] }).input;
const callsOf = (vendorModel: string): readonly LoggedRequest[] =>
  vendor.requests.entries.filter(({ model }) => model === vendorModel);

interface EmbeddingResult {
  readonly status: number;
  readonly tokens: number;
  readonly requestId: string;
}

async function embed(
  { apiKey }: TestAccount,
  model: string,
  input: string | string[],
  more: object = {},
): Promise<EmbeddingResult> {
  const response = await stack.post('/v1/embeddings', apiKey, { model, input, ...more });
  const { usage } = (await response.json()) as { usage?: { prompt_tokens: number } };
  const requestId = response.headers.get('x-request-id')!;
  return { status: response.status, tokens: usage?.prompt_tokens ?? 0, requestId };
}

/** Sends a request, and disconnects when `disconnect()` is called. */
function embedAndDisconnect(
  { apiKey }: TestAccount,
  model: string,
  input: string[],
): { disconnect(): Promise<void> } {
  const caller = new AbortController();
  const outcome = fetch(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    signal: caller.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model, input }),
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

const readRow = ({ id }: TestAccount): Promise<RequestLogDocument | null> =>
  stack.mongo.db.collection<RequestLogDocument>('request_logs').findOne({ accountId: id });

/** Vendor calls of the model so far that contain this text. */
const callsWith = (vendorModel: string, text: string): LoggedRequest[] =>
  callsOf(vendorModel).filter((call) => inputsOf(call).includes(text));

// Serial, because each test waits for a certain number of queued inputs.

test.serial(
  'if a caller of two hundred inputs disconnects, it pays for those already sent to the vendor, and the others are not sent',
  async (t) => {
    const ann = await stack.createAccount();
    const vendorHold = vendor.hold('emb-few');
    const caller = embedAndDisconnect(ann, 'few', textsOf('cat', 200));
    await waitForQueuedInputs(stack, 150);
    await caller.disconnect();
    await waitForQueuedInputs(stack, 0);
    vendorHold.end();
    await waitForNoReservation(stack, ann.id);
    const calls = callsOf('emb-few');
    t.is(calls.length, 1);
    t.false(calls[0]!.isAborted);
    const sentInputs = inputsOf(calls[0]!);
    t.is(sentInputs.length, 50);
    const tokens = 2 * sentInputs.length;
    t.is(await readAmountCharged(stack, ann.id, '100'), BigInt(tokens) * nanoPerToken);
    const row = await waitFor('the log row', () => readRow(ann));
    t.like(row, { errorCode: 'job_cancelled', responseCode: 499, success: false, promptTokens: tokens });
    t.is(
      row.characters,
      sentInputs.reduce((sum, text) => sum + text.length, 0),
    );
  },
);

test.serial(
  'if a caller of two hundred inputs disconnects just before the end, it pays for the complete response',
  async (t) => {
    const ann = await stack.createAccount();
    const vendorHold = vendor.hold('emb-last');
    const inputs = textsOf('cat', 200);
    const caller = embedAndDisconnect(ann, 'last', inputs);
    vendorHold.release(3);
    await waitFor('the last call', () => callsOf('emb-last').length === 4 && vendorHold.waiting === 1);
    await caller.disconnect();
    vendorHold.end();
    await waitForNoReservation(stack, ann.id);
    const tokens = 2 * inputs.length;
    t.is(await readAmountCharged(stack, ann.id, '100'), BigInt(tokens) * nanoPerToken);
  },
);

test.serial(
  'if a caller disconnects, its inputs that still wait are not charged, not logged and not sent to a vendor',
  async (t) => {
    const [ann, bob] = [await stack.createAccount(), await stack.createAccount()];
    const vendorHold = vendor.hold('emb-shared');
    const first = embed(bob, 'shared', 'cat');
    await waitFor('the vendor call', () => vendorHold.waiting === 1);
    const caller = embedAndDisconnect(ann, 'shared', ['never wanted', 'nor this']);
    await waitForQueuedInputs(stack, 2);
    await caller.disconnect();
    await waitForQueuedInputs(stack, 0);
    vendorHold.end();
    await waitForNoReservation(stack, ann.id);
    t.is((await first).status, 200);
    t.is((await embed(bob, 'shared', 'dog')).status, 200);
    t.deepEqual(callsOf('emb-shared').flatMap(inputsOf), ['cat', 'dog']);
    t.is(await readAmountCharged(stack, ann.id, '100'), 0n);
    t.is(await readRow(ann), null);
  },
);

test.serial(
  'if two requests of an account share a text and one disconnects after the text was sent, both pay for it',
  async (t) => {
    const ann = await stack.createAccount();
    const vendorHold = vendor.hold('emb-both');
    // The first call contains fifty inputs, and one input waits. Once that input is no longer queued, the worker has
    // handled the disconnect.
    const disconnecting = embedAndDisconnect(ann, 'both', [...textsOf('cat', 50), 'dog']);
    await waitForQueuedInputs(stack, 1);
    const staying = embed(ann, 'both', ['cat 0', 'bird']);
    await waitForQueuedInputs(stack, 2);
    await disconnecting.disconnect();
    await waitForQueuedInputs(stack, 1);
    vendorHold.end();
    t.is((await staying).status, 200);
    await waitForNoReservation(stack, ann.id);
    t.deepEqual(callsOf('emb-both').slice(1).map(inputsOf), [['bird']]);
    t.is(await readAmountCharged(stack, ann.id, '100'), (100n + 3n) * nanoPerToken);
  },
);

test.serial(
  'callers do not pay for another account’s costly text in a shared call; that account gets separate calls from then on and pays in full',
  async (t) => {
    const name = 'emb-dear+dear-20';
    const accounts = await Promise.all(Array.from({ length: 6 }, () => stack.createAccount()));
    const [eve, ...otherAccounts] = accounts as [TestAccount, ...TestAccount[]];
    const costlyText = (round: number): string => `dear ${'cat '.repeat(60)}${round}`;
    const isCostly = (text: string): boolean => text.startsWith('dear');
    const vendorTokens = 62 * 20;

    interface Round {
      readonly costly: EmbeddingResult;
      readonly others: EmbeddingResult[];
      readonly calls: readonly string[][];
    }

    /** All accounts send a request while a call of one of them holds the only vendor slot. */
    const runRound = async (round: number): Promise<Round> => {
      const vendorHold = vendor.hold(name);
      const before = callsOf(name).length;
      const blocker = embed(otherAccounts[0]!, 'dear', `blocker ${round}`);
      await waitFor('the vendor slot to be taken', () => vendorHold.waiting === 1);
      const costly = embed(eve, 'dear', costlyText(round));
      const others = otherAccounts.map((account, i) => embed(account, 'dear', `cat dog bird ${i}`));
      await waitForQueuedInputs(stack, 6);
      vendorHold.end();
      const results = { costly: await costly, others: await Promise.all(others) };
      t.is((await blocker).status, 200);
      const calls = callsOf(name)
        .slice(before + 1)
        .map(inputsOf);
      return { ...results, calls };
    };
    const checkOthers = ({ others }: Round): void => {
      for (const [i, { status, tokens }] of others.entries()) {
        const ownTokens = countTokens(`cat dog bird ${i}`);
        t.is(status, 200);
        t.true(tokens <= ownTokens + findSlack(ownTokens), `${tokens} tokens for ${ownTokens}`);
      }
    };

    const first = await runRound(1);
    t.deepEqual(
      first.calls.map(({ length }) => length),
      [6],
      'all in one call',
    );
    t.is(
      first.costly.tokens,
      countTokens(costlyText(1)),
      'charged by our own count, because the vendor reports only one token count for the whole call',
    );
    t.true((await findRow(stack, first.costly.requestId)).counted);
    checkOthers(first);

    const second = await runRound(2);
    for (const inputs of second.calls) {
      t.true(inputs.length === 1 || !inputs.some(isCostly), 'a quarantined account shared a call');
    }
    t.is(second.costly.tokens, vendorTokens, 'all tokens that the vendor counts, because the text was alone');
    checkOthers(second);

    // The other accounts share calls again after one separate call each; the quarantined account does not.
    const third = await runRound(3);
    t.deepEqual(third.calls.map((inputs) => `${inputs.length} ${inputs.some(isCostly)}`).sort(), [
      '1 true',
      '5 false',
    ]);
    checkOthers(third);
  },
);

test.serial(
  'a costly text is detected even among many short inputs of another caller, who pays one token for each of them',
  async (t) => {
    const name = 'emb-hiding+dear-7';
    const [eve, bob, ann] = [
      await stack.createAccount(),
      await stack.createAccount(),
      await stack.createAccount(),
    ];
    const letters = Array.from('abcdefghijklmnopqrstuvwxyz');
    const pairs = letters.flatMap((a) => letters.map((b) => a + b));
    const words = pairs.filter((word) => countTokens(word) === 1).slice(0, 200);
    const runRound = async (
      round: number,
    ): Promise<{ dear: EmbeddingResult; plain: EmbeddingResult; isMerged: boolean }> => {
      const vendorHold = vendor.hold(name);
      const blocker = embed(ann, 'hiding', `blocker ${round}`);
      await waitFor('the vendor slot to be taken', () => vendorHold.waiting === 1);
      const text = `dear ${'cat '.repeat(60)}${round}`;
      const [dear, plain] = [embed(eve, 'hiding', text), embed(bob, 'hiding', words)];
      await waitForQueuedInputs(stack, 1 + words.length);
      vendorHold.end();
      t.is((await blocker).status, 200);
      const results = { dear: await dear, plain: await plain };
      return { ...results, isMerged: callsWith(name, text).some((call) => inputsOf(call).length > 1) };
    };
    const first = await runRound(1);
    t.like(first, { plain: { tokens: 200 }, isMerged: true });
    const second = await runRound(2);
    t.like(second, { plain: { tokens: 200 }, dear: { tokens: 62 * 7 }, isMerged: false });
  },
);

test.serial(
  'special tokens set in the catalog are added to every input: short inputs share calls and are charged exactly',
  async (t) => {
    const name = 'emb-marks+special-2';
    const accounts = await Promise.all(Array.from({ length: 5 }, () => stack.createAccount()));
    for (const round of [1, 2]) {
      const vendorHold = vendor.hold(name);
      const blocker = embed(accounts[0]!, 'marks', `blocker ${round}`);
      await waitFor('the vendor slot to be taken', () => vendorHold.waiting === 1);
      const requests = accounts.map((account) => embed(account, 'marks', 'cat'));
      await waitForQueuedInputs(stack, 5);
      vendorHold.end();
      t.is((await blocker).tokens, 4);
      for (const { tokens, requestId } of await Promise.all(requests)) {
        t.is(tokens, 3);
        t.false((await findRow(stack, requestId)).counted);
      }
      t.is(inputsOf(callsOf(name).at(-1)!).length, 5);
    }
  },
);

test.serial(
  'accounts do not share calls of a model priced per second, so that no caller pays for the time of another’s input',
  async (t) => {
    const [ann, bob, eve] = [
      await stack.createAccount(),
      await stack.createAccount(),
      await stack.createAccount(),
    ];
    const vendorHold = vendor.hold('emb-timed');
    const blocker = embed(ann, 'timed', 'blocker');
    await waitFor('the vendor slot to be taken', () => vendorHold.waiting === 1);
    const requests = [
      embed(bob, 'timed', textsOf('bob', 30)),
      embed(eve, 'timed', 'slow'),
      embed(bob, 'timed', ['bob 0', 'bird']),
    ];
    await waitForQueuedInputs(stack, 32);
    vendorHold.end();
    for (const { status } of await Promise.all([blocker, ...requests])) t.is(status, 200);
    const calls = callsOf('emb-timed').map(inputsOf);
    t.deepEqual(
      [...new Set(calls.map((inputs) => inputs.toSorted().join()))].toSorted(),
      ['blocker', 'slow', [...textsOf('bob', 30), 'bird'].toSorted().join()].toSorted(),
      'but requests of the same account share calls',
    );
  },
);

test.serial(
  'if an account sends a bad input and disconnects, it does not share calls with others from then on',
  async (t) => {
    const name = 'emb-mixed+poison';
    const [eve, bob] = [await stack.createAccount(), await stack.createAccount()];
    const runRound = async (round: number): Promise<void> => {
      const vendorHold = vendor.hold(name);
      const blocker = embed(bob, 'mixed', `blocker ${round}`);
      await waitFor('the vendor slot to be taken', () => vendorHold.waiting === 1);
      // More inputs than fit in one call. Once the rest is no longer queued, the worker has handled the disconnect.
      const bad = embedAndDisconnect(eve, 'mixed', [`poison ${round}`, ...textsOf(`round ${round}`, 60)]);
      await waitForQueuedInputs(stack, 61);
      const good = embed(bob, 'mixed', `good ${round}`);
      await waitForQueuedInputs(stack, 62);
      vendorHold.release(1);
      await waitFor('the poison input to be sent', () => callsWith(name, `poison ${round}`).length === 1);
      await bad.disconnect();
      await waitForQueuedInputs(stack, round === 1 ? 0 : 1);
      vendorHold.end();
      t.is((await good).status, 200);
      t.is((await blocker).status, 200);
      await waitForNoReservation(stack, eve.id);
    };
    await runRound(1);
    t.is(callsWith(name, 'poison 1')[0], callsWith(name, 'good 1')[0], 'merged');
    await runRound(2);
    t.deepEqual(callsWith(name, 'good 2').map(inputsOf), [['good 2']]);
    t.is(await readAmountCharged(stack, eve.id, '100'), 0n);
  },
);

test.serial(
  'three hundred requests with different dimensions delay another account by only a few calls',
  async (t) => {
    const [vendorHold, fillerHold] = [vendor.hold('emb-turns'), vendor.hold('emb-filler')];
    const [many, one] = [await stack.createAccount(), await stack.createAccount()];
    // The maximum that the account may have at the workers at a time: 1024 inputs on the quick lane, and one batch in
    // each bulk slot of its share. Later requests wait for these and so form a few batches even if they arrive slowly.
    const filler = Promise.all(
      Array.from({ length: 16 + 64 }, (_, i) => embed(many, 'filler', textsOf(`filler ${i}`, 64))),
    );
    await waitForQueuedInputs(stack, (16 + 64) * 64 - 50);
    const manyRequests = Promise.all(
      Array.from({ length: 300 }, (_, i) => embed(many, 'turns', `text ${i}`, { dimensions: 9 + i })),
    );
    await waitFor('all requests to be admitted', async () => {
      return (await findReservations(stack, many.id)).length === 16 + 64 + 300;
    });
    fillerHold.end();
    t.true((await filler).every(({ status }) => status === 200));
    await waitForQueuedInputs(stack, 298);
    for (let i = 0; i < 3; i++) {
      const before = callsOf('emb-turns').length;
      const single = embed(one, 'turns', `single ${i}`);
      await waitForQueuedInputs(stack, 299 - 3 * i);
      // The two calls in flight, and the two after them.
      vendorHold.release(4);
      t.is((await single).status, 200);
      await waitFor('the next calls', () => vendorHold.waiting === 2);
      const position = callsOf('emb-turns').findIndex((call) => inputsOf(call).includes(`single ${i}`));
      t.true(position - before <= 1, `${position - before} calls came before the single input`);
    }
    vendorHold.end();
    t.true((await manyRequests).every(({ status }) => status === 200));
  },
);

test.serial(
  'if an account has used its share of the vendor slots, its queued input does not block other accounts’ inputs behind it',
  async (t) => {
    const vendorHold = vendor.hold('emb-long');
    const [many, few] = [await stack.createAccount(), await stack.createAccount()];
    t.is((await embed(few, 'quick', 'cat')).status, 200);
    // All vendor slots except the one reserved for the other account.
    const long: Promise<EmbeddingResult>[] = [];
    for (let i = 1; i <= 7; i++) {
      long.push(embed(many, 'long', `text ${i}`));
      await waitFor('the vendor call to start', () => vendorHold.waiting === i);
    }
    const queued = embed(many, 'quick', 'dog', { dimensions: 16 });
    await waitForQueuedInputs(stack, 1);
    t.is((await embed(few, 'quick', 'bird')).status, 200);
    t.deepEqual(callsOf('emb-quick').map(inputsOf), [['cat'], ['bird']]);
    vendorHold.end();
    t.true((await Promise.all([queued, ...long])).every(({ status }) => status === 200));
  },
);
