import { computeAllowed, findFaults } from './judge.ts';
import type { FairnessResult, LatencySummary } from './scenario.ts';

const columns = ['', 'alone p50', 'p99', 'during p50', 'p99', 'allowed p50', 'p99', ''] as const;
const widths = [20, 10, 8, 11, 8, 12, 8, 5];

export function formatFairnessHead(): string {
  return `\nLatency of an innocent account, alone and during an attack, ms\n${formatRow(columns)}`;
}

export function formatFairness(result: FairnessResult): string {
  const { scenario, alone, beside: duringAttack, rssMb } = result;
  const allowed = computeAllowed(result);
  const faults = findFaults(result);
  const waits = ({ p50Ms, p99Ms }: Pick<LatencySummary, 'p50Ms' | 'p99Ms'>): string[] => [
    formatMs(p50Ms),
    formatMs(p99Ms),
  ];
  const cells = [
    scenario.name,
    ...[alone, duringAttack, allowed].flatMap(waits),
    faults.length === 0 ? 'ok' : 'NO',
  ];
  const memory = Object.keys(scenario.mostGrowthMb ?? {}).map((name) => {
    const [before, after] = rssMb[name as 'api' | 'redis'];
    return `  RSS of ${name}: ${Math.round(before)} MB before, ${Math.round(after)} MB during`;
  });
  return [
    formatRow(cells),
    `  ${scenario.attack}; measured: ${scenario.innocent} (${alone.probes} times alone, ${duringAttack.probes} during)`,
    ...memory,
    ...faults.map((fault) => `  !!! ${fault}`),
  ].join('\n');
}

export const fairnessLegend = `
Allowed is three times the latency alone plus the duration of one call. Each attack runs on a separate stack and from a
separate process; api, worker, vendor and attacker share this machine's CPUs.`;

const formatMs = (ms: number): string => ms.toFixed(ms < 100 ? 1 : 0);

function formatRow(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
    .join(' ')
    .trimEnd();
}
