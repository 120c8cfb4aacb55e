import type { RunResult, Way } from './measure.ts';
import { vendors, type Scenario } from './scenario.ts';

export interface ScenarioResult {
  readonly scenario: Scenario;
  readonly callers: number;
  /** All rounds, in the order in which they were run. */
  readonly runs: readonly RunResult[];
}

/** Above it, what is measured shares the machine with something that is not. */
export const disturbedShare = 0.1;

const cpuColumns = ['load', 'vendor', 'api', 'worker', 'redis', 'mongo'] as const;
/** The others are idle then. */
const directColumns: readonly string[] = ['load', 'vendor'];
const columns = ['', 'requests/s', 'p50 ms', 'p99 ms', ...cpuColumns, 'errors', 'others'] as const;
const widths = columns.map((name, i) => (i === 0 ? 10 : Math.max(7, name.length)));

/** The run of the middle throughput: of several rounds, the one to show. */
export function chooseRun(runs: readonly RunResult[], way: Way): RunResult {
  const own = runs.filter((run) => run.way === way);
  return own.sort((a, b) => a.requestsPerSecond - b.requestsPerSecond)[Math.floor(own.length / 2)]!;
}

export function computeRatio(runs: readonly RunResult[]): number {
  return chooseRun(runs, 'gateway').requestsPerSecond / chooseRun(runs, 'direct').requestsPerSecond;
}

export function countErrors({ errors, money }: RunResult): number {
  return Object.values(errors).reduce((sum, count) => sum + count, 0) + (money?.faults.length ?? 0);
}

export function formatHead(): string {
  return `${formatRow(['', '', '', '', 'CPU ms a request'])}\n${formatRow(columns)}`;
}

/** The block of one scenario: both ways, their ratio, and whatever was wrong. */
export function formatScenario({ scenario, callers, runs }: ScenarioResult): string {
  const direct = chooseRun(runs, 'direct');
  const gateway = chooseRun(runs, 'gateway');
  const ratio = computeRatio(runs);
  const added = gateway.p50Ms - direct.p50Ms;
  const lines = [
    '',
    `${scenario.title} · ${callers} callers · the vendor answers ${vendors[scenario.vendor].text}`,
    formatRun(direct),
    formatRun(gateway),
    `${'  ratio'.padEnd(widths[0]!)} ${`${ratio.toFixed(ratio < 1 ? 2 : 1)}×`.padStart(widths[1]!)}   ` +
      `p50 ${added < 0 ? '−' : '+'}${formatMs(Math.abs(added))} ms · ` +
      `${gateway.money!.charges} charges for ${gateway.allAnswers} answers · ` +
      `the ledger was ${Math.round(gateway.money!.behindMs)} ms behind`,
  ];
  const faults = runs.flatMap((run) => [
    ...Object.entries(run.errors).map(([reason, count]) => `${run.way}: ${count} × ${reason}`),
    ...(run.money?.faults ?? []).map((fault) => `${run.way}: ${fault}`),
  ]);
  return [...lines, ...faults.map((fault) => `  !!! ERROR  ${fault}`)].join('\n');
}

function formatRun(run: RunResult): string {
  const isPart = (name: string): boolean => run.way === 'gateway' || directColumns.includes(name);
  const cpu = cpuColumns.map((name) => (isPart(name) ? (run.cpuMsPerRequest[name]?.toFixed(3) ?? '') : ''));
  const others = `${Math.round(run.othersShare * 100)} %${run.othersShare > disturbedShare ? ' !' : ''}`;
  return formatRow([
    `  ${run.way}`,
    formatCount(run.requestsPerSecond),
    formatMs(run.p50Ms),
    formatMs(run.p99Ms),
    ...cpu,
    String(countErrors(run)),
    others,
  ]);
}

function formatRow(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
    .join(' ')
    .trimEnd();
}

export const formatCount = (value: number): string =>
  value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en').replaceAll(',', ' ');

const formatMs = (value: number): string => value.toFixed(value < 100 ? 1 : 0);

export const legend = `
CPU is of the measured time alone, by /proc. "others" is the CPU time of this machine that none of these processes
used; with "!" the numbers are disturbed. The ratio is requests a second through the gateway to those straight to the
vendor, in the same run.`;
