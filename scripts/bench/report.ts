import type { RunResult } from './measure.ts';
import { countVectors, listVariants, vendors, type Scenario, type Variant } from './scenario.ts';

export interface ScenarioResult {
  readonly scenario: Scenario;
  readonly callers: number;
  /** All rounds, in order. */
  readonly runs: readonly RunResult[];
}

/** Above this share, other processes disturb the measurement. */
export const disturbedShare = 0.1;

const cpuColumns = ['load', 'vendor', 'api', 'worker', 'redis', 'mongo'] as const;
/** The processes that take part in a direct run. The others are idle. */
const directColumns: readonly string[] = ['load', 'vendor'];
const columns = ['', 'requests/s', 'p50 ms', 'p99 ms', ...cpuColumns, 'errors', 'others'] as const;
const widths = columns.map((name, i) => (i === 0 ? 10 : Math.max(7, name.length)));

/** Returns the run with the median throughput, which is shown if there are several rounds. */
export function chooseRun(runs: readonly RunResult[], variant: Variant): RunResult {
  const candidates = runs.filter((run) => run.way === variant);
  return candidates.sort((a, b) => a.requestsPerSecond - b.requestsPerSecond)[
    Math.floor(candidates.length / 2)
  ]!;
}

/** Returns null if there is no vendor to call directly. */
export function computeRatio(runs: readonly RunResult[]): number | null {
  if (runs.every(({ way }) => way === 'gateway')) return null;
  return chooseRun(runs, 'gateway').requestsPerSecond / chooseRun(runs, 'direct').requestsPerSecond;
}

export function countErrors({ errors, money }: RunResult): number {
  return Object.values(errors).reduce((sum, count) => sum + count, 0) + (money?.faults.length ?? 0);
}

export function formatHead(): string {
  return `${formatRow(['', '', '', '', 'CPU ms per request'])}\n${formatRow(columns)}`;
}

/** Formats one scenario: the direct and the gateway run, the overhead of the gateway, and any errors. */
export function formatScenario(result: ScenarioResult): string {
  const { scenario, callers, runs } = result;
  const gateway = chooseRun(runs, 'gateway');
  const { vendor } = scenario;
  const lines = [
    '',
    `${scenario.title} · ${callers} ${callers === 1 ? 'caller' : 'callers'} · ` +
      (vendor === null ? 'computed in the worker' : `the vendor responds ${vendors[vendor].text}`),
    ...listVariants(scenario).map((variant) => formatRun(chooseRun(runs, variant))),
    formatComparison(result),
    formatRedis(gateway),
    ...(countVectors(scenario) > 1 ? [formatVectors(scenario, gateway)] : []),
  ];
  const faults = runs.flatMap((run) => [
    ...Object.entries(run.errors).map(([reason, count]) => `${run.way}: ${count} × ${reason}`),
    ...(run.money?.faults ?? []).map((fault) => `${run.way}: ${fault}`),
  ]);
  return [...lines, ...faults.map((fault) => `  !!! ERROR  ${fault}`)].join('\n');
}

function formatComparison({ callers, runs }: ScenarioResult): string {
  const gateway = chooseRun(runs, 'gateway');
  const money =
    `${gateway.money!.charges} charges for ${gateway.allAnswers} responses · ` +
    `the ledger was ${Math.round(gateway.money!.behindMs)} ms behind`;
  const ratio = computeRatio(runs);
  if (ratio === null) return formatNote('money', '', money);
  const addedMs = gateway.p50Ms - chooseRun(runs, 'direct').p50Ms;
  const added = `p50 ${addedMs < 0 ? '−' : '+'}${formatMs(Math.abs(addedMs))} ms`;
  // With a single caller, the request rate only repeats its latency.
  return callers === 1
    ? formatNote('added', added, money)
    : formatNote('ratio', `${ratio.toFixed(ratio < 1 ? 2 : 1)}×`, `${added} · ${money}`);
}

function formatRedis({ redisPerRequest }: RunResult): string {
  const { scripts, scriptUs, commands } = redisPerRequest!;
  const text = `${scriptUs.toFixed(0)} µs per request · ${commands.toFixed(1)} commands in and beside them`;
  return formatNote('redis', `${scripts.toFixed(1)} scripts`, text);
}

function formatVectors(scenario: Scenario, gateway: RunResult): string {
  const vectors = countVectors(scenario);
  const parts = (['api', 'worker', 'redis'] as const).map(
    // One millisecond per vector is a thousand seconds per million vectors.
    (name) => `${name} ${formatCount(((gateway.cpuMsPerRequest[name] ?? 0) / vectors) * 1_000)}`,
  );
  const perSecond = `${formatCount(gateway.requestsPerSecond * vectors)}/s`;
  return formatNote('vectors', perSecond, `CPU seconds per million: ${parts.join(' · ')}`);
}

function formatNote(name: string, value: string, text: string): string {
  return `${`  ${name}`.padEnd(widths[0]!)} ${value.padStart(widths[1]!)}   ${text}`;
}

function formatRun(run: RunResult): string {
  const takesPart = (name: string): boolean => run.way === 'gateway' || directColumns.includes(name);
  const cpu = cpuColumns.map((name) =>
    takesPart(name) ? (run.cpuMsPerRequest[name]?.toFixed(3) ?? '') : '',
  );
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

export const formatWhole = (value: number): string =>
  Math.round(value).toLocaleString('en').replaceAll(',', ' ');

export const formatCount = (value: number): string => (value < 100 ? value.toFixed(1) : formatWhole(value));

const formatMs = (value: number): string => value.toFixed(value < 100 ? 1 : 0);

export const legend = `
CPU time is from /proc and covers only the measured time. "others" is the share of CPU time used by other processes on
this machine; "!" marks numbers that they disturb. The ratio compares requests per second through the gateway with those
sent directly to the vendor, in the same run; "added" is the additional latency of a single caller. The local encoder is
measured from the first request to the last response.`;
