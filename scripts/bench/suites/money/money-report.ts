import { chooseMedian } from '../../harness/statistics.ts';
import type { FastestScenario } from '../../harness/suite.ts';
import { formatCount, formatNote, formatReport, othersColumn, Table } from '../../harness/table.ts';
import { admissionAccounts, type PairRun, type PairVariant } from './admissions.ts';
import { ledgerAccounts, type LedgerRun } from './ledger.ts';

const pairTable = new Table<PairRun>([
  { title: '', cell: ({ way }) => `  ${way}` },
  { title: 'pairs/s', width: 10, cell: ({ pairsPerSecond }) => formatCount(pairsPerSecond) },
  { title: 'redis µs', cell: ({ redisUsPerPair }) => redisUsPerPair.toFixed(1) },
  { title: 'load µs', cell: ({ loadUsPerPair }) => loadUsPerPair.toFixed(1) },
  { title: 'pairs per Redis second', cell: ({ pairsPerRedisSecond }) => formatCount(pairsPerRedisSecond) },
  othersColumn(),
]);

const ledgerTable = new Table<LedgerRun>([
  { title: '', cell: () => '  worker' },
  { title: 'entries/s', width: 10, cell: ({ entriesPerSecond }) => formatCount(entriesPerSecond) },
  ...['worker', 'mongo', 'redis'].map((name) => ({
    title: `${name} µs`,
    cell: ({ cpuUsPerEntry }: LedgerRun) => (cpuUsPerEntry[name] ?? 0).toFixed(1),
  })),
  othersColumn(),
]);

const choosePairRun = (runs: readonly PairRun[], variant: PairVariant): PairRun =>
  chooseMedian(
    runs.filter((run) => run.way === variant),
    (run) => run.pairsPerRedisSecond,
  );

/** Compares the pairs per second of Redis's CPU time, which does not depend on other processes on the machine. */
export const computePairRatio = (runs: readonly PairRun[]): number =>
  choosePairRun(runs, 'scripts').pairsPerRedisSecond / choosePairRun(runs, 'plain').pairsPerRedisSecond;

const chooseLedgerRun = (runs: readonly LedgerRun[]): LedgerRun =>
  chooseMedian(runs, (run) => run.entriesPerSecond);

/** Returns how many times the gateway's highest rate the ledger reached; null if no scenario was run. */
export const computeLedgerRatio = (
  runs: readonly LedgerRun[],
  fastest: FastestScenario | null,
): number | null =>
  fastest === null ? null : chooseLedgerRun(runs).entriesPerSecond / fastest.settlementsPerSecond;

export const formatAdmissions = (runs: readonly PairRun[], callers: number): string =>
  formatReport(
    `Admission and settlement · ${formatCount(admissionAccounts)} accounts · ${callers} concurrent pairs`,
    [
      ...pairTable.format([choosePairRun(runs, 'plain'), choosePairRun(runs, 'scripts')]),
      formatNote(
        'ratio',
        `${computePairRatio(runs).toFixed(2)}×`,
        "the pairs of a plain HINCRBY, HINCRBY and XADD, by Redis's CPU",
      ),
    ],
    runs.flatMap(({ faults }) => faults),
  );

export function formatLedger(runs: readonly LedgerRun[], fastest: FastestScenario | null): string {
  const run = chooseLedgerRun(runs);
  const ratio = computeLedgerRatio(runs, fastest);
  return formatReport(
    `Ledger into MongoDB · ${formatCount(run.entries)} entries · ${ledgerAccounts} accounts`,
    [
      ...ledgerTable.format([run]),
      ratio === null
        ? formatNote('ratio', 'none', 'no scenario was run to compare with')
        : formatNote(
            'ratio',
            `${ratio.toFixed(1)}×`,
            `the settlements of ${fastest!.name}, the fastest scenario`,
          ),
    ],
    runs.flatMap(({ faults }) => faults),
  );
}
