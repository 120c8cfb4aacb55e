import { standardVendors } from '../../harness/stack/standard-stack.ts';
import { chooseMedian, listErrors, sum } from '../../harness/statistics.ts';
import {
  cpuColumns,
  formatAddedMs,
  formatCount,
  formatMs,
  formatNote,
  formatReport,
  othersColumn,
  Table,
} from '../../harness/table.ts';
import { countVectors, listVariants, type LoadScenario, type Variant } from './load-scenario.ts';
import type { RunResult } from './measure.ts';

export interface ScenarioResult {
  readonly scenario: LoadScenario;
  readonly callers: number;
  /** All rounds, in order. */
  readonly runs: readonly RunResult[];
}

/** The processes that take part in a direct run. The others are idle. */
const directProcesses: readonly string[] = ['load', 'vendor'];

const table = new Table<RunResult>([
  { title: '', cell: ({ way }) => `  ${way}` },
  { title: 'requests/s', cell: ({ requestsPerSecond }) => formatCount(requestsPerSecond) },
  { title: 'p50 ms', cell: ({ p50Ms }) => formatMs(p50Ms) },
  { title: 'p99 ms', cell: ({ p99Ms }) => formatMs(p99Ms) },
  ...cpuColumns<RunResult>('request', ({ way, cpuMsPerRequest }, process) =>
    way === 'gateway' || directProcesses.includes(process) ? cpuMsPerRequest[process] : undefined,
  ),
  { title: 'errors', cell: (run) => String(countErrors(run)) },
  othersColumn(),
]);

export const formatHead = (): string => table.formatHead();

/** Returns the run with the median throughput, which is shown if there are several rounds. */
export const chooseRun = (runs: readonly RunResult[], variant: Variant): RunResult =>
  chooseMedian(
    runs.filter((run) => run.way === variant),
    (run) => run.requestsPerSecond,
  );

/** Returns null if there is no vendor to call directly. */
export function computeRatio(runs: readonly RunResult[]): number | null {
  if (runs.every(({ way }) => way === 'gateway')) return null;
  return chooseRun(runs, 'gateway').requestsPerSecond / chooseRun(runs, 'direct').requestsPerSecond;
}

export const countErrors = ({ errors, money }: RunResult): number =>
  sum(Object.values(errors)) + (money?.faults.length ?? 0);

/** Formats one scenario: the direct and the gateway run, the overhead of the gateway, and any errors. */
export function formatScenario(result: ScenarioResult): string {
  const { scenario, callers, runs } = result;
  const gateway = chooseRun(runs, 'gateway');
  const { vendor } = scenario;
  const from =
    vendor === null ? 'computed in the worker' : `the vendor responds ${standardVendors[vendor].text}`;
  return formatReport(
    `${scenario.title} · ${callers} ${callers === 1 ? 'caller' : 'callers'} · ${from}`,
    [
      ...listVariants(scenario).map((variant) => table.formatRow(chooseRun(runs, variant))),
      formatComparison(result),
      formatRedis(gateway),
      ...(countVectors(scenario) > 1 ? [formatVectors(scenario, gateway)] : []),
    ],
    runs.flatMap(({ way, errors, money }) =>
      [...listErrors(errors), ...(money?.faults ?? [])].map((fault) => `${way}: ${fault}`),
    ),
  );
}

function formatComparison({ callers, runs }: ScenarioResult): string {
  const gateway = chooseRun(runs, 'gateway');
  const money =
    `${gateway.money!.charges} charges for ${gateway.allAnswers} responses · ` +
    `the ledger was ${Math.round(gateway.money!.behindMs)} ms behind`;
  const ratio = computeRatio(runs);
  if (ratio === null) return formatNote('money', '', money);
  const added = `p50 ${formatAddedMs(gateway.p50Ms - chooseRun(runs, 'direct').p50Ms, formatMs)}`;
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

function formatVectors(scenario: LoadScenario, gateway: RunResult): string {
  const vectors = countVectors(scenario);
  const parts = (['api', 'worker', 'redis'] as const).map(
    // One millisecond per vector is a thousand seconds per million vectors.
    (name) => `${name} ${formatCount(((gateway.cpuMsPerRequest[name] ?? 0) / vectors) * 1_000)}`,
  );
  const perSecond = `${formatCount(gateway.requestsPerSecond * vectors)}/s`;
  return formatNote('vectors', perSecond, `CPU seconds per million: ${parts.join(' · ')}`);
}

export const legend = `
CPU time is from /proc and covers only the measured time. "others" is the share of CPU time used by other processes on
this machine; "!" marks numbers that they disturb. The ratio compares requests per second through the gateway with those
sent directly to the vendor, in the same run; "added" is the additional latency of a single caller. The local encoder is
measured from the first request to the last response.`;
