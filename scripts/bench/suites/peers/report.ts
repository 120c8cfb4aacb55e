import { chooseMedian } from '../../harness/statistics.ts';
import { formatAddedMs, formatCount, formatFault, Table, type Column } from '../../harness/table.ts';
import type { Comparison } from './comparisons.ts';
import { peerName } from './install-peer.ts';
import type { SideName } from './peer-stack.ts';
import type { PeerResult, PeerRound, SideRun } from './peers-suite.ts';

const width = 12;
const format = (ms: number): string => ms.toFixed(2);

const ratioColumns = (side: SideName): Column<PeerResult>[] => [
  { title: 'ratio', width, cell: (result) => formatRate(result, side) },
  { title: 'CPU ratio', width, cell: (result) => formatCpu(result, side) },
];

const createTable = (comparesNodes: boolean) =>
  new Table<PeerResult>([
    {
      title: '',
      width: 50,
      cell: ({ comparison: { title, baseline } }) =>
        `${title}, against ${baseline === 'peer' ? peerName : 'direct'}`,
    },
    { title: 'baseline', width, cell: (result) => formatValue(result, result.comparison.baseline) },
    { title: 'gateway', width, cell: (result) => formatValue(result, 'gateway') },
    ...ratioColumns('gateway'),
    ...(comparesNodes ? ratioColumns('own') : []),
  ]);

/** Formats the head of the table. `ownNode` is null if only one version of Node is measured. */
export function formatPeersHead(peerNode: string, ownNode: string | null): string {
  const on = `${peerName} and this gateway, both on Node ${peerNode}`;
  const also = ownNode === null ? '' : `; the last two columns: this gateway on Node ${ownNode}`;
  return `\n${on}${also}\n\n${createTable(ownNode !== null).formatHead()}`;
}

/** Formats one row: the baseline and the gateway, and the median of the ratios of all rounds. */
export function formatComparison(result: PeerResult, comparesNodes: boolean): string {
  const faults = result.rounds.flatMap((round) =>
    Object.entries(round).flatMap(([side, run]) =>
      run.faults.map((fault) => formatFault(`${side}: ${fault}`)),
    ),
  );
  return [createTable(comparesNodes).formatRow(result), ...faults].join('\n');
}

function formatValue({ comparison, rounds }: PeerResult, side: SideName): string {
  const value = median(rounds.map((round) => read(comparison, round[side]!)));
  return comparison.measures === 'rate' ? `${formatCount(value)}/s` : `${format(value)} ms`;
}

function formatRate({ comparison, rounds }: PeerResult, side: SideName): string {
  const compared = compare(comparison, rounds, side, (ours, theirs) =>
    comparison.measures === 'rate'
      ? ours.requestsPerSecond / theirs.requestsPerSecond
      : read(comparison, ours) - read(comparison, theirs),
  );
  return comparison.measures === 'rate' ? `${format(compared)}×` : formatAddedMs(compared, format);
}

/** Only another gateway does comparable work. */
function formatCpu({ comparison, rounds }: PeerResult, side: SideName): string {
  if (comparison.measures !== 'rate' || comparison.baseline === 'direct') return '';
  return `${format(compare(comparison, rounds, side, (ours, theirs) => ours.cpuMs / theirs.cpuMs))}×`;
}

const compare = (
  { baseline }: Comparison,
  rounds: readonly PeerRound[],
  side: SideName,
  calculate: (ours: SideRun, theirs: SideRun) => number,
): number => median(rounds.map((round) => calculate(round[side]!, round[baseline]!)));

function read({ measures }: Comparison, run: SideRun): number {
  if (measures === 'rate') return run.requestsPerSecond;
  return measures === 'p50' ? run.p50Ms : run.firstByteP50Ms;
}

const median = (values: readonly number[]): number => chooseMedian(values, (value) => value);

export const peersLegend = `
Each ratio is the median over the rounds of gateway / baseline in the same round. The CPU time of the gateway includes
its api, worker, Redis and MongoDB; authentication, limits, billing and logs are on. A single caller's row shows the
latency that the gateway adds.`;
