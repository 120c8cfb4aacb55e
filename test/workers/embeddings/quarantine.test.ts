import test from 'ava';
import { Quarantine } from '../../../workers/embeddings/quarantine.ts';

const tokens = (counts: Record<string, number>): Map<string, number> => new Map(Object.entries(counts));

test('an account with a rejected input shares no calls for a minute after the last rejection, even if its other calls agree', (t) => {
  let nowMs = 5;
  const quarantine = new Quarantine(() => nowMs);
  t.is(quarantine.cohortOf('ann'), null);
  quarantine.addRejected('ann');
  nowMs += 30_000;
  quarantine.addRejected('bob');
  quarantine.addRejected('ann');
  quarantine.vouch(tokens({ ann: 1e9, bob: 1e9 }));
  nowMs += 59_999;
  t.not(quarantine.cohortOf('ann'), null);
  t.not(quarantine.cohortOf('bob'), null);
  t.not(quarantine.cohortOf('ann'), quarantine.cohortOf('bob'));
  nowMs += 1;
  t.is(quarantine.cohortOf('ann'), null);
  t.is(quarantine.cohortOf('bob'), null);
});

test('all accounts of a divergent call are isolated; an account is cleared once it has as many tokens in calls that agree', (t) => {
  const quarantine = new Quarantine(() => 0);
  quarantine.addDivergentCall(tokens({ ann: 10, bob: 20, eve: 500 }));
  const cohorts = ['ann', 'bob', 'eve'].map((id) => quarantine.cohortOf(id));
  t.false(cohorts.includes(null));
  t.is(new Set(cohorts).size, 3);
  quarantine.vouch(tokens({ ann: 10 }));
  quarantine.vouch(tokens({ bob: 19 }));
  quarantine.vouch(tokens({ eve: 20 }));
  t.is(quarantine.cohortOf('ann'), null);
  t.not(quarantine.cohortOf('bob'), null);
  t.not(quarantine.cohortOf('eve'), null, 'a small input does not vouch for a large one');
  quarantine.vouch(tokens({ bob: 1 }));
  t.is(quarantine.cohortOf('bob'), null);
});

test('if a call with only one account diverges, the account stays isolated for ten minutes, even if later calls agree or it is checked', (t) => {
  let nowMs = 0;
  const quarantine = new Quarantine(() => nowMs);
  quarantine.addDivergentCall(tokens({ ann: 10, eve: 10 }));
  nowMs += 50_000;
  quarantine.addDivergentCall(tokens({ eve: 10 }));
  nowMs += 50_000;
  t.is(quarantine.cohortOf('ann'), null);
  quarantine.vouch(tokens({ eve: 1e9 }));
  quarantine.addCheck('eve', 1);
  nowMs += 10 * 60_000 - 50_001;
  t.not(quarantine.cohortOf('eve'), null);
  nowMs += 1;
  t.is(quarantine.cohortOf('eve'), null);
  quarantine.addCheck('eve', 1);
  quarantine.vouch(tokens({ eve: 1 }));
  t.is(quarantine.cohortOf('eve'), null, 'a past divergence does not affect a later check');
});

test('a checked account is isolated until it has as many tokens in calls that agree, at most for a minute', (t) => {
  let nowMs = 0;
  const quarantine = new Quarantine(() => nowMs);
  for (const id of ['ann', 'bob']) quarantine.addCheck(id, 10);
  t.not(quarantine.cohortOf('ann'), quarantine.cohortOf('bob'));
  quarantine.vouch(tokens({ ann: 9, bob: 10 }));
  t.not(quarantine.cohortOf('ann'), null);
  t.is(quarantine.cohortOf('bob'), null);
  nowMs += 60_000;
  t.is(quarantine.cohortOf('ann'), null);
});

test('one bad account among hundreds is alone in its calls after the second divergent call, and the others need few extra calls', (t) => {
  const quarantine = new Quarantine(() => 0);
  const accounts = Array.from({ length: 512 }, (_, i) => `account ${i}`);
  const bad = 'account 77';
  const groupByCohort = (): string[][] => {
    const groups = new Map<number, string[]>();
    for (const id of accounts) {
      const cohort = quarantine.cohortOf(id);
      if (cohort !== null) groups.set(cohort, [...(groups.get(cohort) ?? []), id]);
    }
    return [...groups.values()];
  };
  quarantine.addDivergentCall(new Map(accounts.map((id) => [id, 5])));
  let calls = 0;
  for (let round = 0; round < 3; round++) {
    for (const group of groupByCohort()) {
      calls += 1;
      const tokensOf = new Map(group.map((id) => [id, 10]));
      if (group.includes(bad)) quarantine.addDivergentCall(tokensOf);
      else quarantine.vouch(tokensOf);
    }
  }
  t.true(calls <= 32 + 16 + 16, `${calls} calls`);
  t.deepEqual(groupByCohort(), [[bad]]);
});

test('only the latest accounts are remembered, up to a limit', (t) => {
  const quarantine = new Quarantine(() => 0);
  for (let i = 0; i < 20_000; i++) quarantine.addRejected(`account ${i}`);
  t.is(quarantine.cohortOf('account 0'), null);
  t.not(quarantine.cohortOf('account 19999'), null);
});
