import test from 'ava';
import { readOptions } from '../../../../../scripts/bench/harness/options.ts';
import { comparisons } from '../../../../../scripts/bench/suites/peers/comparisons.ts';
import type { PeerRound, SideRun } from '../../../../../scripts/bench/suites/peers/peers-suite.ts';
import { formatComparison } from '../../../../../scripts/bench/suites/peers/report.ts';
import { suites } from '../../../../../scripts/bench/suites/suites.ts';

const createRun = (more: Partial<SideRun>): SideRun => ({
  measuredMs: 1_000,
  answers: 100,
  backgroundAnswers: 0,
  aborted: 0,
  allAnswers: 100,
  p50Ms: 1,
  p99Ms: 2,
  maxMs: 3,
  firstByteP50Ms: 1,
  errors: {},
  cpu: { measuredMs: 1_000, processes: {}, othersMs: 0, othersShare: 0 },
  requestsPerSecond: 100,
  cpuMs: 1,
  faults: [],
  ...more,
});

const find = (name: string) => comparisons.find((comparison) => comparison.name === name)!;

test('a row shows the median of the ratios of its rounds, not the ratio of the medians', (t) => {
  const rounds: PeerRound[] = [
    [100, 150],
    [200, 100],
    [50, 100],
  ].map(([theirs, ours]) => ({
    peer: createRun({ requestsPerSecond: theirs!, cpuMs: 2 }),
    gateway: createRun({ requestsPerSecond: ours!, cpuMs: 1 }),
  }));
  const row = formatComparison({ comparison: find('peers-chat'), rounds }, false);
  t.regex(row, /^Chat, 32 callers, against Portkey [\d.]+ +100\/s +100\/s +1\.50× +0\.50×$/);
});

test('a single caller’s row shows the added latency, and faults are listed below their row', (t) => {
  const rounds: PeerRound[] = [
    {
      direct: createRun({ firstByteP50Ms: 0.5 }),
      gateway: createRun({ firstByteP50Ms: 3, faults: ['2 × HTTP 503'] }),
      own: createRun({ firstByteP50Ms: 4.25 }),
    },
  ];
  const text = formatComparison({ comparison: find('peers-first-token'), rounds }, true);
  t.regex(text, /0\.50 ms +3\.00 ms +\+2\.50 ms +\+3\.75 ms\n {2}!!! ERROR {2}gateway: 2 × HTTP 503$/);
});

test('the comparisons run only if they are asked for, three rounds unless told otherwise', (t) => {
  const select = (args: string[], name = 'peers') =>
    readOptions(suites, args)!.selections.find(({ suite }) => suite.name === name)!;
  t.is(select([]).scenarios.length, 0);
  const asked = select(['peers']);
  t.is(asked.scenarios.length, comparisons.length);
  t.is(select(['peers'], 'scenarios').scenarios.length, 0);
  t.is(asked.rounds, 3);
  t.is(select(['peers', '--rounds', '1']).rounds, 1);
});
