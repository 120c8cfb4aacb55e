import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { countTokens } from '../../shared/pricing/count-tokens.ts';
import { findSlack } from '../../workers/embeddings/bill-call.ts';
import {
  findReservations,
  findRow,
  readLoss,
  waitForInputsInLine,
  waitForNoReservation,
} from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What callers pay, and wait for, who share calls with others that leave, count otherwise or ask for odd things. */

const nanoPerToken = 1_000_000n;

const modelOf = (id: string, vendorModel: string, upstream: string): string =>
  `  - { id: ${id}, type: embedding, context: 8192, dimensions: { default: 8, adjustable: true, max: 1024 }, pricing: { in_cost_per_million: 1000 }, routes: [{ upstream: ${upstream}, model: "${vendorModel}" }] }`;

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

interface Asked {
  readonly status: number;
  readonly tokens: number;
  readonly requestId: string;
}

async function embed(
  { apiKey }: TestAccount,
  model: string,
  input: string | string[],
  more: object = {},
): Promise<Asked> {
  const response = await stack.post('/v1/embeddings', apiKey, { model, input, ...more });
  const { usage } = (await response.json()) as { usage?: { prompt_tokens: number } };
  const requestId = response.headers.get('x-request-id')!;
  return { status: response.status, tokens: usage?.prompt_tokens ?? 0, requestId };
}

/** Asks, and leaves when told to. */
function embedAndLeave({ apiKey }: TestAccount, model: string, input: string[]): { leave(): Promise<void> } {
  const caller = new AbortController();
  const answer = fetch(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    signal: caller.signal,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ model, input }),
  }).then(
    () => 'answered',
    () => 'left',
  );
  return {
    async leave() {
      caller.abort();
      if ((await answer) !== 'left') throw new Error('it was answered before it could leave');
    },
  };
}

const readRow = ({ id }: TestAccount): Promise<RequestLogDocument | null> =>
  stack.mongo.db.collection<RequestLogDocument>('request_logs').findOne({ accountId: id });

/** Calls of the model so far that hold this text. */
const callsWith = (vendorModel: string, text: string): LoggedRequest[] =>
  callsOf(vendorModel).filter((call) => inputsOf(call).includes(text));

// One after the other, as each counts what stands in line.

test.serial(
  'of two hundred inputs whose caller leaves, those that a vendor was asked for are paid and the others are not asked for',
  async (t) => {
    const ann = await stack.createAccount();
    const held = vendor.hold('emb-few');
    const caller = embedAndLeave(ann, 'few', textsOf('cat', 200));
    await waitForInputsInLine(stack, 150);
    await caller.leave();
    await waitForInputsInLine(stack, 0);
    held.end();
    await waitForNoReservation(stack, ann.id);
    const calls = callsOf('emb-few');
    t.is(calls.length, 1);
    t.false(calls[0]!.isAborted);
    const asked = inputsOf(calls[0]!);
    t.is(asked.length, 50);
    const tokens = 2 * asked.length;
    t.is(await readLoss(stack, ann.id, '100'), BigInt(tokens) * nanoPerToken);
    const row = await waitFor('the row', () => readRow(ann));
    t.like(row, { errorCode: 'job_cancelled', responseCode: 499, success: false, promptTokens: tokens });
    t.is(
      row.characters,
      asked.reduce((sum, text) => sum + text.length, 0),
    );
  },
);

test.serial(
  'two hundred inputs whose caller leaves just before the end cost what their answer would have',
  async (t) => {
    const ann = await stack.createAccount();
    const held = vendor.hold('emb-last');
    const inputs = textsOf('cat', 200);
    const caller = embedAndLeave(ann, 'last', inputs);
    held.release(3);
    await waitFor('the last call', () => callsOf('emb-last').length === 4 && held.waiting === 1);
    await caller.leave();
    held.end();
    await waitForNoReservation(stack, ann.id);
    const tokens = 2 * inputs.length;
    t.is(await readLoss(stack, ann.id, '100'), BigInt(tokens) * nanoPerToken);
  },
);

test.serial(
  'inputs that still wait when their caller leaves cost nothing, leave no row and reach no vendor',
  async (t) => {
    const [ann, bob] = [await stack.createAccount(), await stack.createAccount()];
    const held = vendor.hold('emb-shared');
    const first = embed(bob, 'shared', 'cat');
    await waitFor('the call', () => held.waiting === 1);
    const caller = embedAndLeave(ann, 'shared', ['never wanted', 'nor this']);
    await waitForInputsInLine(stack, 2);
    await caller.leave();
    await waitForInputsInLine(stack, 0);
    held.end();
    await waitForNoReservation(stack, ann.id);
    t.is((await first).status, 200);
    t.is((await embed(bob, 'shared', 'dog')).status, 200);
    t.deepEqual(callsOf('emb-shared').flatMap(inputsOf), ['cat', 'dog']);
    t.is(await readLoss(stack, ann.id, '100'), 0n);
    t.is(await readRow(ann), null);
  },
);

test.serial(
  'of two requests of an account that share a text, the one that leaves once it was asked for pays as well',
  async (t) => {
    const ann = await stack.createAccount();
    const held = vendor.hold('emb-both');
    // Fifty go with the first call, and the last waits: when it is gone, the worker knows that its caller left.
    const leaving = embedAndLeave(ann, 'both', [...textsOf('cat', 50), 'dog']);
    await waitForInputsInLine(stack, 1);
    const staying = embed(ann, 'both', ['cat 0', 'bird']);
    await waitForInputsInLine(stack, 2);
    await leaving.leave();
    await waitForInputsInLine(stack, 1);
    held.end();
    t.is((await staying).status, 200);
    await waitForNoReservation(stack, ann.id);
    t.deepEqual(callsOf('emb-both').slice(1).map(inputsOf), [['bird']]);
    t.is(await readLoss(stack, ann.id, '100'), (100n + 3n) * nanoPerToken);
  },
);

test.serial(
  'nobody pays for a neighbour whose texts the vendor counts many times, who then has calls of his own and pays them in full',
  async (t) => {
    const name = 'emb-dear+dear-20';
    const accounts = await Promise.all(Array.from({ length: 6 }, () => stack.createAccount()));
    const [eve, ...innocents] = accounts as [TestAccount, ...TestAccount[]];
    const dearText = (round: number): string => `dear ${'cat '.repeat(60)}${round}`;
    const isDear = (text: string): boolean => text.startsWith('dear');
    const vendorTokens = 62 * 20;

    interface Round {
      readonly own: Asked;
      readonly others: Asked[];
      readonly calls: readonly string[][];
    }

    /** All ask while a call of one of them takes the only slot. */
    const askAll = async (round: number): Promise<Round> => {
      const held = vendor.hold(name);
      const before = callsOf(name).length;
      const blocker = embed(innocents[0]!, 'dear', `blocker ${round}`);
      await waitFor('the slot to be taken', () => held.waiting === 1);
      const own = embed(eve, 'dear', dearText(round));
      const others = innocents.map((account, i) => embed(account, 'dear', `cat dog bird ${i}`));
      await waitForInputsInLine(stack, 6);
      held.end();
      const answers = { own: await own, others: await Promise.all(others) };
      t.is((await blocker).status, 200);
      const calls = callsOf(name)
        .slice(before + 1)
        .map(inputsOf);
      return { ...answers, calls };
    };
    const checkOthers = ({ others }: Round): void => {
      for (const [i, { status, tokens }] of others.entries()) {
        const own = countTokens(`cat dog bird ${i}`);
        t.is(status, 200);
        t.true(tokens <= own + findSlack(own), `${tokens} tokens for ${own}`);
      }
    };

    const first = await askAll(1);
    t.deepEqual(
      first.calls.map(({ length }) => length),
      [6],
      'all in one call',
    );
    t.is(
      first.own.tokens,
      countTokens(dearText(1)),
      'by our own count, as nobody knows whose texts are dear',
    );
    t.true((await findRow(stack, first.own.requestId)).counted);
    checkOthers(first);

    const second = await askAll(2);
    for (const inputs of second.calls) {
      t.true(inputs.length === 1 || !inputs.some(isDear), 'an account in quarantine shared a call');
    }
    t.is(second.own.tokens, vendorTokens, 'alone, all that the vendor counts');
    checkOthers(second);

    // Innocent accounts are together again after a call of their own each; the other one is not.
    const third = await askAll(3);
    t.deepEqual(third.calls.map((inputs) => `${inputs.length} ${inputs.some(isDear)}`).sort(), [
      '1 true',
      '5 false',
    ]);
    checkOthers(third);
  },
);

test.serial(
  'a dear text does not hide in many short inputs of a neighbour, whose words pay one by one',
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
    const ask = async (round: number): Promise<{ dear: Asked; plain: Asked; isMerged: boolean }> => {
      const held = vendor.hold(name);
      const blocker = embed(ann, 'hiding', `blocker ${round}`);
      await waitFor('the slot to be taken', () => held.waiting === 1);
      const text = `dear ${'cat '.repeat(60)}${round}`;
      const [dear, plain] = [embed(eve, 'hiding', text), embed(bob, 'hiding', words)];
      await waitForInputsInLine(stack, 1 + words.length);
      held.end();
      t.is((await blocker).status, 200);
      const answers = { dear: await dear, plain: await plain };
      return { ...answers, isMerged: callsWith(name, text).some((call) => inputsOf(call).length > 1) };
    };
    const first = await ask(1);
    t.like(first, { plain: { tokens: 200 }, isMerged: true });
    const second = await ask(2);
    t.like(second, { plain: { tokens: 200 }, dear: { tokens: 62 * 7 }, isMerged: false });
  },
);

test.serial(
  'special tokens that the catalog names are counted as everybody’s own: short inputs share calls, and pay exactly',
  async (t) => {
    const name = 'emb-marks+special-2';
    const accounts = await Promise.all(Array.from({ length: 5 }, () => stack.createAccount()));
    for (const round of [1, 2]) {
      const held = vendor.hold(name);
      const blocker = embed(accounts[0]!, 'marks', `blocker ${round}`);
      await waitFor('the slot to be taken', () => held.waiting === 1);
      const asked = accounts.map((account) => embed(account, 'marks', 'cat'));
      await waitForInputsInLine(stack, 5);
      held.end();
      t.is((await blocker).tokens, 4);
      for (const { tokens, requestId } of await Promise.all(asked)) {
        t.is(tokens, 3);
        t.false((await findRow(stack, requestId)).counted);
      }
      t.is(inputsOf(callsOf(name).at(-1)!).length, 5);
    }
  },
);

test.serial(
  'accounts share no calls of a model that is paid by time, so that nobody pays for the time of a neighbour’s input',
  async (t) => {
    const [ann, bob, eve] = [
      await stack.createAccount(),
      await stack.createAccount(),
      await stack.createAccount(),
    ];
    const held = vendor.hold('emb-timed');
    const blocker = embed(ann, 'timed', 'blocker');
    await waitFor('the slot to be taken', () => held.waiting === 1);
    const asked = [
      embed(bob, 'timed', textsOf('bob', 30)),
      embed(eve, 'timed', 'slow'),
      embed(bob, 'timed', ['bob 0', 'bird']),
    ];
    await waitForInputsInLine(stack, 32);
    held.end();
    for (const { status } of await Promise.all([blocker, ...asked])) t.is(status, 200);
    const calls = callsOf('emb-timed').map(inputsOf);
    t.deepEqual(
      new Set(calls.map((inputs) => inputs.toSorted().join())),
      new Set(['blocker', 'slow', [...textsOf('bob', 30), 'bird'].toSorted().join()]),
      'but the requests of one account do',
    );
  },
);

test.serial('who leaves after sending what is refused shares no calls with others either', async (t) => {
  const name = 'emb-mixed+poison';
  const [eve, bob] = [await stack.createAccount(), await stack.createAccount()];
  const ask = async (round: number): Promise<void> => {
    const held = vendor.hold(name);
    const blocker = embed(bob, 'mixed', `blocker ${round}`);
    await waitFor('the slot to be taken', () => held.waiting === 1);
    // More than a call takes: when the rest is gone, the worker knows that the caller left.
    const bad = embedAndLeave(eve, 'mixed', [`poison ${round}`, ...textsOf(`round ${round}`, 60)]);
    await waitForInputsInLine(stack, 61);
    const good = embed(bob, 'mixed', `good ${round}`);
    await waitForInputsInLine(stack, 62);
    held.release(1);
    await waitFor('the poison to be asked for', () => callsWith(name, `poison ${round}`).length === 1);
    await bad.leave();
    await waitForInputsInLine(stack, round === 1 ? 0 : 1);
    held.end();
    t.is((await good).status, 200);
    t.is((await blocker).status, 200);
    await waitForNoReservation(stack, eve.id);
  };
  await ask(1);
  t.is(callsWith(name, 'poison 1')[0], callsWith(name, 'good 1')[0], 'merged');
  await ask(2);
  t.deepEqual(callsWith(name, 'good 2').map(inputsOf), [['good 2']]);
  t.is(await readLoss(stack, eve.id, '100'), 0n);
});

test.serial(
  'three hundred requests for as many dimensions keep another account waiting for a few calls',
  async (t) => {
    const [held, filling] = [vendor.hold('emb-turns'), vendor.hold('emb-filler')];
    const [many, one] = [await stack.createAccount(), await stack.createAccount()];
    // All that the account may have with the workers at once, so that the requests after it gather in a few batches, however
    // slowly they come: 1024 inputs that go the quick way, and its share of the runs for bulk, a batch each.
    const filler = Promise.all(
      Array.from({ length: 16 + 64 }, (_, i) => embed(many, 'filler', textsOf(`filler ${i}`, 64))),
    );
    await waitForInputsInLine(stack, (16 + 64) * 64 - 50);
    const flood = Promise.all(
      Array.from({ length: 300 }, (_, i) => embed(many, 'turns', `text ${i}`, { dimensions: 9 + i })),
    );
    await waitFor('all to be admitted', async () => {
      return (await findReservations(stack, many.id)).length === 16 + 64 + 300;
    });
    filling.end();
    t.true((await filler).every(({ status }) => status === 200));
    await waitForInputsInLine(stack, 298);
    for (let i = 0; i < 3; i++) {
      const before = callsOf('emb-turns').length;
      const single = embed(one, 'turns', `single ${i}`);
      await waitForInputsInLine(stack, 299 - 3 * i);
      // The two that are under way, and the next two.
      held.release(4);
      t.is((await single).status, 200);
      await waitFor('the next calls', () => held.waiting === 2);
      const place = callsOf('emb-turns').findIndex((call) => inputsOf(call).includes(`single ${i}`));
      t.true(place - before <= 1, `${place - before} calls came before the single input`);
    }
    held.end();
    t.true((await flood).every(({ status }) => status === 200));
  },
);

test.serial(
  'an account that has its share of the slots keeps nobody waiting whose inputs stand behind its own',
  async (t) => {
    const held = vendor.hold('emb-long');
    const [many, few] = [await stack.createAccount(), await stack.createAccount()];
    t.is((await embed(few, 'quick', 'cat')).status, 200);
    // All but the slot that is kept for the other account.
    const long: Promise<Asked>[] = [];
    for (let i = 1; i <= 7; i++) {
      long.push(embed(many, 'long', `text ${i}`));
      await waitFor('its call', () => held.waiting === i);
    }
    const own = embed(many, 'quick', 'dog', { dimensions: 16 });
    await waitForInputsInLine(stack, 1);
    t.is((await embed(few, 'quick', 'bird')).status, 200);
    t.deepEqual(callsOf('emb-quick').map(inputsOf), [['cat'], ['bird']]);
    held.end();
    t.true((await Promise.all([own, ...long])).every(({ status }) => status === 200));
  },
);
