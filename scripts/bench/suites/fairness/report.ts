import { formatMs, Table } from '../../harness/table.ts';
import { computeAllowed, findFaults } from './judge.ts';
import type { FairnessResult } from './scenario.ts';

const table = new Table<FairnessResult>([
  { title: '', width: 20, cell: ({ scenario }) => scenario.name },
  { title: 'alone p50', width: 10, cell: ({ alone }) => formatMs(alone.p50Ms) },
  { title: 'p99', width: 8, cell: ({ alone }) => formatMs(alone.p99Ms) },
  { title: 'during p50', width: 11, cell: ({ beside }) => formatMs(beside.p50Ms) },
  { title: 'p99', width: 8, cell: ({ beside }) => formatMs(beside.p99Ms) },
  { title: 'allowed p50', width: 12, cell: (result) => formatMs(computeAllowed(result).p50Ms) },
  { title: 'p99', width: 8, cell: (result) => formatMs(computeAllowed(result).p99Ms) },
  { title: '', width: 5, cell: (result) => (findFaults(result).length === 0 ? 'ok' : 'NO') },
]);

export const formatFairnessHead = (): string =>
  `\nLatency of an innocent account, alone and during an attack, ms\n${table.formatHead()}`;

export function formatFairness(result: FairnessResult): string {
  const { scenario, alone, beside: duringAttack, rssMb } = result;
  const memory = Object.keys(scenario.mostGrowthMb ?? {}).map((name) => {
    const [before, after] = rssMb[name as 'api' | 'redis'];
    return `  RSS of ${name}: ${Math.round(before)} MB before, ${Math.round(after)} MB during`;
  });
  return [
    table.formatRow(result),
    `  ${scenario.attack}; measured: ${scenario.innocent} (${alone.probes} times alone, ${duringAttack.probes} during)`,
    ...memory,
    ...findFaults(result).map((fault) => `  !!! ${fault}`),
  ].join('\n');
}

export const fairnessLegend = `
Allowed is three times the latency alone plus the duration of one call. Each attack runs on a separate stack and from a
separate process; api, worker, vendor and attacker share this machine's CPUs.`;
