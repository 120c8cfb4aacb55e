import { listErrors, type LatencySummary } from '../../harness/statistics.ts';
import type { FairnessResult } from './scenario.ts';

/** Allowed latency during an attack: this many times the latency without it, plus one call. */
const allowedFactor = 3;

export function computeAllowed({ alone, callMs }: FairnessResult): { p50Ms: number; p99Ms: number } {
  return { p50Ms: allowedFactor * alone.p50Ms + callMs, p99Ms: allowedFactor * alone.p99Ms + callMs };
}

/** Returns what is wrong with a result: failed requests, latency above the limit, and too much memory growth. */
export function findFaults(result: FairnessResult): string[] {
  const { alone, beside: duringAttack, rssMb } = result;
  const { mostGrowthMb: maxGrowthMb = {} } = result.scenario;
  const allowed = computeAllowed(result);
  const failures = (where: string, { failures: counts }: LatencySummary): string[] =>
    listErrors(counts).map((text) => `${where}: ${text}`);
  const exceeded: string[] = [];
  if (duringAttack.p50Ms > allowed.p50Ms) exceeded.push('p50 exceeds the limit');
  if (duringAttack.p99Ms > allowed.p99Ms) exceeded.push('p99 exceeds the limit');
  const grown = Object.entries(maxGrowthMb).flatMap(([name, maxMb]) => {
    const [before, after] = rssMb[name as 'api' | 'redis'];
    const grownMb = Math.round(after - before);
    return grownMb > maxMb ? [`${name} grew by ${grownMb} MB; ${maxMb} MB are allowed`] : [];
  });
  return [...failures('alone', alone), ...failures('beside', duringAttack), ...exceeded, ...grown];
}
