import { formatCount } from '../report.ts';
import type { Comparison } from './comparisons.ts';
import { peerName } from './install-peer.ts';
import type { PeerResult, PeerRound, SideName, SideRun } from './run-peers.ts';

const titleWidth = 50;
const columnWidth = 12;

/** Formats the head of the table. `ownNode` is null if only one version of Node is measured. */
export function formatPeersHead(peerNode: string, ownNode: string | null): string {
  const names = ['baseline', 'gateway', 'ratio', 'CPU ratio'];
  const own = ownNode === null ? [] : ['ratio', 'CPU ratio'];
  const on = `${peerName} and this gateway, both on Node ${peerNode}`;
  const also = ownNode === null ? '' : `; the last two columns: this gateway on Node ${ownNode}`;
  return `\n${on}${also}\n\n${formatRow('', [...names, ...own])}`;
}

/** Formats one row: the baseline and the gateway, and the median of the ratios of all rounds. */
export function formatComparison({ comparison, rounds }: PeerResult, comparesNodes: boolean): string {
  const against = comparison.baseline === 'peer' ? peerName : 'direct';
  const value = (name: SideName): string => {
    const number = median(rounds.map((round) => read(comparison, round[name]!)));
    return comparison.measures === 'rate' ? `${formatCount(number)}/s` : `${number.toFixed(2)} ms`;
  };
  const cells = [
    value(comparison.baseline),
    value('gateway'),
    ...formatRatios(comparison, rounds, 'gateway'),
    ...(comparesNodes ? formatRatios(comparison, rounds, 'own') : []),
  ];
  const faults = rounds.flatMap((round) =>
    Object.entries(round).flatMap(([side, run]) =>
      run.faults.map((fault) => `  !!! ERROR  ${side}: ${fault}`),
    ),
  );
  return [formatRow(`${comparison.title}, against ${against}`, cells), ...faults].join('\n');
}

function formatRatios(comparison: Comparison, rounds: readonly PeerRound[], side: SideName): string[] {
  const { baseline, measures } = comparison;
  const compare = (calculate: (ours: SideRun, theirs: SideRun) => number): number =>
    median(rounds.map((round) => calculate(round[side]!, round[baseline]!)));
  if (measures !== 'rate') {
    const added = compare((ours, theirs) => read(comparison, ours) - read(comparison, theirs));
    return [`${added < 0 ? '−' : '+'}${Math.abs(added).toFixed(2)} ms`, ''];
  }
  const rate = compare((ours, theirs) => ours.requestsPerSecond / theirs.requestsPerSecond);
  if (baseline === 'direct') return [`${rate.toFixed(2)}×`, ''];
  return [`${rate.toFixed(2)}×`, `${compare((ours, theirs) => ours.cpuMs / theirs.cpuMs).toFixed(2)}×`];
}

function read({ measures }: Comparison, run: SideRun): number {
  if (measures === 'rate') return run.requestsPerSecond;
  return measures === 'p50' ? run.p50Ms : run.firstByteP50Ms;
}

/** Returns the lower of the two middle values of an even number of values. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!;
}

const formatRow = (title: string, cells: readonly string[]): string =>
  `${title.padEnd(titleWidth)}${cells.map((cell) => cell.padStart(columnWidth)).join('')}`.trimEnd();

export const peersLegend = `
Each ratio is the median over the rounds of gateway / baseline in the same round. The CPU time of the gateway includes
its api, worker, Redis and MongoDB; authentication, limits, billing and logs are on. A single caller's row shows the
latency that the gateway adds.`;
