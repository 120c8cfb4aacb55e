import { admissionAccounts, type PairRun, type PairVariant } from './admissions.ts';
import { ledgerAccounts, type LedgerRun } from './ledger.ts';
import { disturbedShare, formatCount } from './report.ts';

/** The gateway's highest rate in this run, which the ledger must keep up with. */
export interface FastestScenario {
  readonly name: string;
  readonly settlementsPerSecond: number;
}

/** Returns the run with the median cost, which is shown if there are several rounds. */
export function choosePairRun(runs: readonly PairRun[], variant: PairVariant): PairRun {
  return chooseMiddle(
    runs.filter((run) => run.way === variant),
    (run) => run.pairsPerRedisSecond,
  );
}

/** Compares the pairs per second of Redis's CPU time, which does not depend on other processes on the machine. */
export function computePairRatio(runs: readonly PairRun[]): number {
  return (
    choosePairRun(runs, 'scripts').pairsPerRedisSecond / choosePairRun(runs, 'plain').pairsPerRedisSecond
  );
}

export function chooseLedgerRun(runs: readonly LedgerRun[]): LedgerRun {
  return chooseMiddle(runs, (run) => run.entriesPerSecond);
}

export function computeLedgerRatio(
  runs: readonly LedgerRun[],
  fastest: FastestScenario | null,
): number | null {
  return fastest === null ? null : chooseLedgerRun(runs).entriesPerSecond / fastest.settlementsPerSecond;
}

function chooseMiddle<T>(runs: readonly T[], valueOf: (run: T) => number): T {
  return [...runs].sort((a, b) => valueOf(a) - valueOf(b))[Math.floor(runs.length / 2)]!;
}

export function formatAdmissions(runs: readonly PairRun[], callers: number): string {
  const rows = (['plain', 'scripts'] as const).map((variant) => {
    const run = choosePairRun(runs, variant);
    return [
      `  ${variant}`,
      formatCount(run.pairsPerSecond),
      run.redisUsPerPair.toFixed(1),
      run.loadUsPerPair.toFixed(1),
      formatCount(run.pairsPerRedisSecond),
      formatOthers(run.othersShare),
    ];
  });
  return [
    '',
    `Admission and settlement · ${formatCount(admissionAccounts)} accounts · ${callers} concurrent pairs`,
    ...formatTable([['', 'pairs/s', 'redis µs', 'load µs', 'pairs per Redis second', 'others'], ...rows]),
    `  ratio      ${computePairRatio(runs).toFixed(2)}× the pairs of a plain HINCRBY, HINCRBY and XADD, by Redis's CPU`,
    ...formatFaults(runs),
  ].join('\n');
}

export function formatLedger(runs: readonly LedgerRun[], fastest: FastestScenario | null): string {
  const run = chooseLedgerRun(runs);
  const ratio = computeLedgerRatio(runs, fastest);
  const parts = ['worker', 'mongo', 'redis'];
  const row = [
    '  worker',
    formatCount(run.entriesPerSecond),
    ...parts.map((name) => (run.cpuUsPerEntry[name] ?? 0).toFixed(1)),
    formatOthers(run.othersShare),
  ];
  return [
    '',
    `Ledger into MongoDB · ${formatCount(run.entries)} entries · ${ledgerAccounts} accounts`,
    ...formatTable([['', 'entries/s', ...parts.map((name) => `${name} µs`), 'others'], row]),
    ratio === null
      ? '  ratio      none: no scenario was run to compare with'
      : `  ratio      ${ratio.toFixed(1)}× the settlements of ${fastest!.name}, the fastest scenario`,
    ...formatFaults(runs),
  ].join('\n');
}

export function countMoneyFaults(runs: readonly { readonly faults: readonly string[] }[]): number {
  return runs.reduce((sum, { faults }) => sum + faults.length, 0);
}

const formatOthers = (share: number): string =>
  `${Math.round(share * 100)} %${share > disturbedShare ? ' !' : ''}`;

const formatFaults = (runs: readonly { readonly faults: readonly string[] }[]): string[] =>
  runs.flatMap(({ faults }) => faults.map((fault) => `  !!! ERROR  ${fault}`));

function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, i) => Math.max(10, ...rows.map((row) => row[i]!.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join(' ')
      .trimEnd(),
  );
}
