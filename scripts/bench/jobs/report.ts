import type { LatencySummary } from '../fairness/scenario.ts';
import { disturbedShare, formatCount } from '../report.ts';
import { jobsTitle, lookUpsPerSecond, lookUpTargetMs, type JobsRun, type SingleJobs } from './scenario.ts';

const cpuColumns = ['load', 'vendor', 'api', 'worker', 'redis', 'mongo'] as const;
const columns = ['', 'jobs/s', 'p50 ms', 'p99 ms', ...cpuColumns, 'others'] as const;
const widths = columns.map((name, i) => (i === 0 ? 10 : Math.max(7, name.length)));

export function formatJobs(run: JobsRun): string {
  const { placed, ran, memory, lookUps, single, money } = run;
  const placedPerSecond = (placed.jobs * 1_000) / placed.measuredMs;
  const formatPhase = (name: string, perSecond: number, waits: string[], phase: typeof placed | typeof ran) =>
    formatRow([
      `  ${name}`,
      formatCount(perSecond),
      ...waits,
      ...cpuColumns.map((column) => phase.cpuMsPerJob[column]?.toFixed(3) ?? ''),
      `${Math.round(phase.othersShare * 100)} %${phase.othersShare > disturbedShare ? ' !' : ''}`,
    ]);
  const waitRatio = Math.max(1, single.behind.waitMs.p50) / Math.max(1, single.alone.waitMs.p50);
  return [
    '',
    `${jobsTitle} · ${formatCount(run.jobs)} jobs of one account · ${run.callers} connections`,
    formatRow(['', '', '', '', 'CPU ms per job']),
    formatRow(columns),
    formatPhase('in', placedPerSecond, [placed.p50Ms, placed.p99Ms].map(formatMs), placed),
    formatPhase('out', ran.jobsPerSecond, ['', ''], ran),
    formatNote(
      'ratio',
      `${(ran.jobsPerSecond / placedPerSecond).toFixed(2)}×`,
      'jobs finished per job placed',
    ),
    formatNote(
      'memory',
      `${Math.round(memory.waiting)} B`,
      `of Redis per waiting job, including ${memory.body} B for its body`,
    ),
    formatNote(
      '',
      `${Math.round(memory.ended)} B`,
      `of Redis per finished job, including ${memory.answer} B for its response`,
    ),
    formatLookUps('look-ups', lookUps.placing, 'while jobs are placed'),
    formatLookUps('', lookUps.running, 'while jobs run'),
    formatSingle('single', single.alone, 'alone'),
    formatSingle('', single.behind, 'behind the others'),
    ...(single.behind.probes === 0
      ? []
      : [
          formatNote(
            '',
            `${waitRatio.toFixed(1)}×`,
            `its wait alone; jobs started in between: p50 ${single.behind.startedBetween.p50}, ` +
              `max ${single.behind.startedBetween.most}`,
          ),
        ]),
    formatNote(
      'money',
      '',
      `${money.charges} charges for ${run.jobs} jobs · the ledger was ${Math.round(money.behindMs)} ms behind · ` +
        `${run.retaken} jobs taken twice`,
    ),
    ...listFaults(run).map((fault) => `  !!! ERROR  ${fault}`),
    jobsLegend,
  ].join('\n');
}

const jobsLegend = `
Jobs are placed while no worker runs, so that all of them wait at the same time; then a worker is started. "in" lasts until
the last 202, "out" from the first start to the last end. CPU time is from /proc; for "out" it includes the start of the
worker. Look-ups are GET /v1/jobs/{id}, ${lookUpsPerSecond} per second. Single jobs belong to another account; their waits are from their records.`;

export function countJobFaults(run: JobsRun | null): number {
  return run === null ? 0 : listFaults(run).length;
}

/** Slow look-ups are a result, not an error. */
function listFaults({ placed, lookUps, money, faults }: JobsRun): string[] {
  const counts = [placed.errors, lookUps.placing.failures, lookUps.running.failures];
  return [
    ...counts.flatMap((each) => Object.entries(each)).map(([reason, count]) => `${count} × ${reason}`),
    ...money.faults,
    ...faults,
  ];
}

function formatLookUps(name: string, { probes, p50Ms, p99Ms }: LatencySummary, when: string): string {
  const isSlow = p99Ms >= lookUpTargetMs;
  const verdict = `${isSlow ? 'NOT below' : 'below'} ${lookUpTargetMs} ms`;
  return formatNote(
    name,
    `${formatMs(p99Ms)} ms`,
    `p99 ${when}, ${verdict}; p50 ${formatMs(p50Ms)} ms, ${probes} times`,
  );
}

function formatSingle(name: string, { probes, waitMs, doneMs }: SingleJobs, when: string): string {
  if (probes === 0) return formatNote(name, 'none', `${when}: all jobs finished before one could be placed`);
  return formatNote(
    name,
    `${waitMs.p50} ms`,
    `p50 until start, ${when}; max ${waitMs.most} ms; until end p50 ${doneMs.p50} ms, ` +
      `max ${doneMs.most} ms; ${probes} times`,
  );
}

const formatMs = (ms: number): string => ms.toFixed(ms < 100 ? 1 : 0);

function formatNote(name: string, value: string, text: string): string {
  return `${`  ${name}`.padEnd(widths[0]!)} ${value.padStart(widths[1]!)}   ${text}`;
}

function formatRow(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
    .join(' ')
    .trimEnd();
}
