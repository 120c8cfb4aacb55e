import test from 'ava';
import type { CallClass } from '../../../shared/work/queue/call-class.ts';
import { TieredInputs, type TieredInput } from '../../../workers/embeddings/tiered-inputs.ts';

/** What one call takes of the waiting inputs of several classes. */

interface Item extends TieredInput {
  readonly name: string;
}

function add(
  waiting: TieredInputs<Item>,
  callClass: CallClass,
  accountId: string,
  count = 1,
  more: Partial<Item> = {},
): void {
  const group = {};
  for (let i = 0; i < count; i++) {
    const name = `${callClass} ${accountId}`;
    waiting.add({
      callClass,
      accountId,
      name,
      dimensions: null,
      sharesCalls: true,
      tokens: 1,
      group,
      ...more,
    });
  }
}

const limits = { maxInputs: 10, maxTokens: 1_000 };
const take = (waiting: TieredInputs<Item>, callClass: CallClass, accountId: string, enough = 10): string[] =>
  waiting
    .take(callClass, accountId, { ...limits, maxInputs: enough, enough }, limits, limits)
    .map(({ name }) => name);

test('accounts take turns in what background inputs fill of a call', (t) => {
  const waiting = new TieredInputs<Item>();
  add(waiting, 'job', 'a', 2);
  add(waiting, 'batch', 'many', 20);
  add(waiting, 'batch', 'few', 2);
  add(waiting, 'batch', 'one');
  const names = take(waiting, 'job', 'a');
  t.is(names.length, 10);
  t.deepEqual(names.slice(0, 5), ['job a', 'job a', 'batch many', 'batch few', 'batch one']);
  t.is(waiting.size, 15);
});

test('a call for jobs has as many inputs of jobs as without background inputs', (t) => {
  const waiting = new TieredInputs<Item>();
  add(waiting, 'job', 'a', 8);
  add(waiting, 'batch', 'b', 20);
  t.is(take(waiting, 'job', 'a', 4).filter((name) => name === 'job a').length, 4);
  t.is(waiting.of('job').size, 4);
  t.is(waiting.of('batch').size, 14);
});

test('quarantined accounts share no call with those of other cohorts, of whatever class they are', (t) => {
  const waiting = new TieredInputs<Item>((accountId) => (accountId.startsWith('bad') ? 1 : null));
  for (const callClass of ['interactive', 'job', 'batch'] as const)
    for (const accountId of ['bad', 'good']) add(waiting, callClass, accountId);
  t.deepEqual(take(waiting, 'batch', 'bad'), ['interactive bad', 'batch bad']);
  t.deepEqual(take(waiting, 'batch', 'good'), ['interactive good', 'batch good']);
  t.deepEqual(take(waiting, 'job', 'bad'), ['job bad']);
});

test('calls are filled within the limit of tokens, and what is too large goes alone', (t) => {
  const waiting = new TieredInputs<Item>();
  add(waiting, 'interactive', 'a', 2, { tokens: 400 });
  add(waiting, 'batch', 'b', 2, { tokens: 150 });
  add(waiting, 'batch', 'c', 1, { tokens: 5_000 });
  t.deepEqual(take(waiting, 'batch', 'b'), ['interactive a', 'interactive a', 'batch b']);
  t.deepEqual(take(waiting, 'batch', 'c'), ['batch c']);
  t.deepEqual(take(waiting, 'batch', 'c'), ['batch b']);
  t.deepEqual(take(waiting, 'batch', 'c'), []);
});
