import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { countTokens } from '../../shared/pricing/count-tokens.ts';
import { findSlack } from '../../workers/embeddings/bill-call.ts';
import { findReservations, findRow, readLoss, waitForNoReservation } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What callers pay, and wait for, who share calls with others that leave, count otherwise or ask for odd things. */

const nanoPerToken = 1_000_000n;

const modelOf = (id: string, vendorModel: string, upstream: string): string =>
  `  - { id: ${id}, type: embedding, context: 8192, dimensions: { default: 8, adjustable: true, max: 1024 }, pricing: { in_cost_per_million: 1000 }, routes: [{ upstream: ${upstream}, model: "${vendorModel}" }] }`;

const catalogOf = (vendorUrl: string): string => `
upstreams:
${['few', 'last', 'shared', 'dear', 'mixed'].map((name) => `  ${name}: { kind: openai, baseUrl: "${vendorUrl}/v1", maxConcurrency: 1, maxBatchInputs: 50 }`).join('\n')}
  two: { kind: openai, baseUrl: "${vendorUrl}/v1", maxConcurrency: 2 }
models:
${modelOf('few', 'emb-few+slow-700', 'few')}
${modelOf('last', 'emb-last+slow-700', 'last')}
${modelOf('shared', 'emb-shared+slow-1000', 'shared')}
${modelOf('dear', 'emb-dear+slow-300+dear-20', 'dear')}
${modelOf('mixed', 'emb-mixed+slow-1000+poison', 'mixed')}
${modelOf('turns', 'emb-turns+slow-50', 'two')}
`;

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

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

test('of two hundred inputs whose caller leaves, those that a vendor was asked for are paid and the others are not asked for', async (t) => {
  const ann = await stack.createAccount();
  const name = 'emb-few+slow-700';
  const caller = embedAndLeave(
    ann,
    'few',
    Array.from({ length: 200 }, (_, i) => `cat ${i}`),
  );
  await vendor.requests.waitFor(({ model }) => model === name);
  await caller.leave();
  await waitForNoReservation(stack, ann.id);
  const calls = callsOf(name);
  const asked = calls.flatMap(inputsOf);
  t.true(asked.length >= 1 && asked.length < 200, `${asked.length} inputs were asked for`);
  t.false(calls.some(({ isAborted }) => isAborted));
  const tokens = 2 * asked.length;
  t.is(await readLoss(stack, ann.id, '100'), BigInt(tokens) * nanoPerToken);
  const row = await waitFor('the row', () => readRow(ann));
  t.like(row, { errorCode: 'job_cancelled', responseCode: 499, success: false, promptTokens: tokens });
  t.is(
    row.characters,
    asked.reduce((sum, text) => sum + text.length, 0),
  );
});

test('two hundred inputs whose caller leaves just before the end cost what their answer would have', async (t) => {
  const ann = await stack.createAccount();
  const name = 'emb-last+slow-700';
  const inputs = Array.from({ length: 200 }, (_, i) => `cat ${i}`);
  const caller = embedAndLeave(ann, 'last', inputs);
  const wereAllAsked = (): boolean => callsOf(name).flatMap(inputsOf).length === 200;
  await waitFor('the last call', wereAllAsked);
  await caller.leave();
  await waitForNoReservation(stack, ann.id);
  const tokens = 2 * inputs.length;
  t.is(await readLoss(stack, ann.id, '100'), BigInt(tokens) * nanoPerToken);
});

test('inputs that still wait when their caller leaves cost nothing, leave no row and reach no vendor', async (t) => {
  const [ann, bob] = [await stack.createAccount(), await stack.createAccount()];
  const name = 'emb-shared+slow-1000';
  const first = embed(bob, 'shared', 'cat');
  await vendor.requests.waitFor(({ model }) => model === name);
  const caller = embedAndLeave(ann, 'shared', ['never wanted', 'nor this']);
  await waitFor('its reservation', async () => (await findReservations(stack, ann.id)).length === 1);
  await caller.leave();
  await waitForNoReservation(stack, ann.id);
  t.is((await first).status, 200);
  t.is((await embed(bob, 'shared', 'dog')).status, 200);
  t.deepEqual(callsOf(name).flatMap(inputsOf), ['cat', 'dog']);
  t.is(await readLoss(stack, ann.id, '100'), 0n);
  t.is(await readRow(ann), null);

  // Of two requests of an account that share a text, the one that leaves once it was asked for pays as well.
  const leaving = embedAndLeave(ann, 'shared', ['cat cat']);
  await waitFor('the call', () => callsOf(name).length === 3);
  const staying = embed(ann, 'shared', 'cat cat');
  await waitFor('both reservations', async () => (await findReservations(stack, ann.id)).length === 2);
  await waitFor('its job to be taken', async () => (await stack.redis.llen('{bull}:embedding:wait')) === 0);
  await leaving.leave();
  const stayed = await staying;
  t.is(stayed.status, 200);
  await waitForNoReservation(stack, ann.id);
  const calls = callsOf(name).length;
  t.true(calls === 3 || calls === 4, 'shared, unless it came when the call was over');
  t.is(await readLoss(stack, ann.id, '100'), 4n * nanoPerToken);
});

test('nobody pays for a neighbour whose texts the vendor counts many times, who then has calls of his own and pays them in full', async (t) => {
  const name = 'emb-dear+slow-300+dear-20';
  const accounts = await Promise.all(Array.from({ length: 6 }, () => stack.createAccount()));
  const [eve, ...innocents] = accounts as [TestAccount, ...TestAccount[]];
  const dearText = (round: number): string => `dear ${'cat '.repeat(60)}${round}`;
  const isDear = (text: string): boolean => text.startsWith('dear');
  const vendorTokens = 62 * 20;

  const askAll = async (round: number): Promise<{ own: Asked; others: Asked[] }> => {
    // A call of somebody else's holds the one slot while the others gather.
    const before = callsOf(name).length;
    const blocker = embed(innocents[0]!, 'dear', `blocker ${round}`);
    await waitFor('the slot to be taken', () => callsOf(name).length > before);
    const own = embed(eve, 'dear', dearText(round));
    const others = innocents.map((account, i) => embed(account, 'dear', `cat dog bird ${i}`));
    const answers = { own: await own, others: await Promise.all(others) };
    await blocker;
    return answers;
  };

  const first = await askAll(1);
  const merged = callsOf(name).find((call) => inputsOf(call).some(isDear))!;
  t.true(inputsOf(merged).length > 1, 'the calls were not merged: nothing was shown');
  t.is(first.own.tokens, countTokens(dearText(1)), 'by our own count, as nobody knows whose texts are dear');
  t.true((await findRow(stack, first.own.requestId)).counted);
  for (const [i, { status, tokens }] of first.others.entries()) {
    const own = countTokens(`cat dog bird ${i}`);
    t.is(status, 200);
    t.true(tokens <= own + findSlack(own), `${tokens} tokens for ${own}`);
  }

  const callsBefore = callsOf(name).length;
  const second = await askAll(2);
  const calls = callsOf(name).slice(callsBefore);
  for (const call of calls) {
    const inputs = inputsOf(call);
    t.true(inputs.length === 1 || !inputs.some(isDear), 'an account in quarantine shared a call');
  }
  t.is(second.own.tokens, vendorTokens, 'alone, all that the vendor counts');
  for (const [i, { tokens }] of second.others.entries()) {
    const own = countTokens(`cat dog bird ${i}`);
    t.true(tokens <= own + findSlack(own), `${tokens} tokens for ${own}`);
  }

  // Innocent accounts are together again after a call of their own each; the other one is not.
  const again = callsOf(name).length;
  await askAll(3);
  const sizes = callsOf(name)
    .slice(again)
    .map((call) => [inputsOf(call).length, inputsOf(call).some(isDear)] as const);
  t.true(
    sizes.some(([size, hasDear]) => size >= 4 && !hasDear),
    JSON.stringify(sizes),
  );
  t.deepEqual(
    sizes.filter(([, hasDear]) => hasDear).map(([size]) => size),
    [1],
  );
});

test('who leaves after sending what is refused shares no calls with others either', async (t) => {
  const name = 'emb-mixed+slow-1000+poison';
  const [eve, bob] = [await stack.createAccount(), await stack.createAccount()];
  const ask = async (round: number): Promise<void> => {
    const before = callsOf(name).length;
    const blocker = embed(bob, 'mixed', `blocker ${round}`);
    await waitFor('the slot to be taken', () => callsOf(name).length > before);
    const bad = embedAndLeave(eve, 'mixed', [`poison ${round}`]);
    const good = embed(bob, 'mixed', `good ${round}`);
    await waitFor('the poison to be asked for', () =>
      callsOf(name).some((call) => inputsOf(call).includes(`poison ${round}`)),
    );
    await bad.leave();
    t.is((await good).status, 200);
    await blocker;
  };
  await ask(1);
  await waitForNoReservation(stack, eve.id);
  await ask(2);
  const second = callsOf(name).filter((call) => inputsOf(call).includes('poison 2'));
  t.deepEqual(second.map(inputsOf), [['poison 2']]);
  t.is(await readLoss(stack, eve.id, '100'), 0n);
});

test('three hundred requests for as many dimensions keep another account waiting for a few calls', async (t) => {
  const name = 'emb-turns+slow-50';
  const [many, one] = [await stack.createAccount(), await stack.createAccount()];
  const flood = Promise.all(
    Array.from({ length: 300 }, (_, i) => embed(many, 'turns', `text ${i}`, { dimensions: 9 + i })),
  );
  await waitFor('the flood', () => callsOf(name).length >= 20);
  for (let i = 0; i < 3; i++) {
    const before = callsOf(name).length;
    const { status } = await embed(one, 'turns', `single ${i}`);
    t.is(status, 200);
    const place = callsOf(name).findIndex((call) => inputsOf(call).includes(`single ${i}`)) - before;
    t.true(place <= 60, `${place} calls came before the single input`);
  }
  t.true((await flood).every(({ status }) => status === 200));
});
