import test from 'ava';
import { chooseCheck } from '../../../workers/embeddings/choose-check.ts';
import { billCall } from '../../../workers/embeddings/bill-call.ts';
import { Quarantine } from '../../../workers/embeddings/quarantine.ts';

const tokensOf = new Map([
  ['ann', 900],
  ['bob', 1_000],
  ['eve', 67],
]);
const countedSum = 1_967;
/** A tenth of our count, plus two tokens per account. */
const tolerance = 196 + 6;

test('no account is checked if a call has only one, or if the vendor counts no more than we do', (t) => {
  t.is(
    chooseCheck(tokensOf, { countedSum, excess: 0 }, () => 0),
    null,
  );
  t.is(
    chooseCheck(new Map([['eve', 67]]), { countedSum: 67, excess: 8 }, () => 0),
    null,
  );
});

test('the probability of a check is the excess divided by the tolerance', (t) => {
  for (const excess of [20, 100, tolerance]) {
    t.not(
      chooseCheck(tokensOf, { countedSum, excess }, () => (excess - 0.1) / tolerance),
      null,
    );
    if (excess < tolerance)
      t.is(
        chooseCheck(tokensOf, { countedSum, excess }, () => excess / tolerance),
        null,
      );
  }
});

test('only accounts for which the excess would exceed their own tolerance are checked', (t) => {
  const choose = (excess: number, pick: number): string | null => {
    const random = [0, pick];
    return chooseCheck(tokensOf, { countedSum, excess }, () => random.shift()!);
  };
  t.is(choose(50, 0), 'eve');
  t.is(choose(50, 0.99), 'eve', 'an excess of fifty is within the tolerance of every other account');
  t.deepEqual([choose(100, 0), choose(100, 0.99)], ['ann', 'eve']);
  t.is(choose(8, 0), null, 'an excess of eight is within the tolerance of every account');
});

test('an account whose texts the vendor counts higher than we do, within the tolerance of the other accounts, is isolated after a few calls and stays isolated', (t) => {
  let seed = 7;
  const random = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const quarantine = new Quarantine(() => 0);
  const inputs = [
    ...Array.from({ length: 9 }, (_, i) => ({ accountId: `account ${i}`, tokens: 450, counted: 450 })),
    { accountId: 'eve', tokens: 67, counted: 442 },
  ];
  let shared = 0;
  for (let round = 0; round < 400; round++) {
    const byCohort = new Map<number | null, typeof inputs>();
    for (const input of inputs) {
      const cohort = quarantine.cohortOf(input.accountId);
      byCohort.set(cohort, [...(byCohort.get(cohort) ?? []), input]);
    }
    for (const call of byCohort.values()) {
      const counted = call.reduce((sum, input) => sum + input.counted, 0);
      const bill = billCall(call, counted);
      const ownTokens = new Map(call.map(({ accountId, tokens }) => [accountId, tokens]));
      if (call.length > 1 && ownTokens.has('eve')) shared += 1;
      if (bill.agrees === false) quarantine.addDivergentCall(ownTokens);
      else quarantine.vouch(ownTokens);
      const checked = chooseCheck(ownTokens, bill, random);
      if (checked !== null) quarantine.addCheck(checked, ownTokens.get(checked)!);
    }
  }
  t.true(shared < 30, `${shared} calls of 400 were shared`);
  t.not(quarantine.cohortOf('eve'), null);
});
