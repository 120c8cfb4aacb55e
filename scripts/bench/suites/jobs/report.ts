import { listErrors, type LatencySummary } from '../../harness/statistics.ts';
import {
  cpuColumns,
  formatCount,
  formatMs,
  formatNote,
  formatReport,
  othersColumn,
  Table,
} from '../../harness/table.ts';
import {
  jobsTitle,
  lookUpsPerSecond,
  lookUpTargetMs,
  type JobsRun,
  type PhaseCpu,
  type SingleJobs,
} from './jobs-plan.ts';

interface Phase extends PhaseCpu {
  readonly name: string;
  readonly jobsPerSecond: number;
  /** Only of the phase that has requests. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
}

const formatWait = (ms?: number): string => (ms === undefined ? '' : formatMs(ms));

const table = new Table<Phase>([
  { title: '', cell: ({ name }) => `  ${name}` },
  { title: 'jobs/s', width: 10, cell: ({ jobsPerSecond }) => formatCount(jobsPerSecond) },
  { title: 'p50 ms', cell: ({ p50Ms }) => formatWait(p50Ms) },
  { title: 'p99 ms', cell: ({ p99Ms }) => formatWait(p99Ms) },
  ...cpuColumns<Phase>('job', ({ cpuMsPerJob }, process) => cpuMsPerJob[process]),
  othersColumn(),
]);

export function formatJobs(run: JobsRun): string {
  const { placed, ran, memory, lookUps, single, money } = run;
  const placedPerSecond = (placed.jobs * 1_000) / placed.measuredMs;
  const waitRatio = Math.max(1, single.behind.waitMs.p50) / Math.max(1, single.alone.waitMs.p50);
  const { startedBetween } = single.behind;
  const bytes = (value: number): string => `${Math.round(value)} B`;
  const report = formatReport(
    `${jobsTitle} · ${formatCount(run.jobs)} jobs of one account · ${run.callers} connections`,
    [
      ...table.format([
        { ...placed, name: 'in', jobsPerSecond: placedPerSecond },
        { ...ran, name: 'out' },
      ]),
      formatNote(
        'ratio',
        `${(ran.jobsPerSecond / placedPerSecond).toFixed(2)}×`,
        'jobs finished per job placed',
      ),
      formatNote(
        'memory',
        bytes(memory.waiting),
        `of Redis per waiting job, including ${memory.body} B for its body`,
      ),
      formatNote(
        '',
        bytes(memory.ended),
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
              `its wait alone; jobs started in between: p50 ${startedBetween.p50}, max ${startedBetween.most}`,
            ),
          ]),
      formatNote(
        'money',
        '',
        `${money.charges} charges for ${run.jobs} jobs · the ledger was ${Math.round(money.behindMs)} ms behind · ` +
          `${run.retaken} jobs taken twice`,
      ),
    ],
    listFaults(run),
  );
  return `${report}\n${legend}`;
}

const legend = `
Jobs are placed while no worker runs, so that all of them wait at the same time; then a worker is started. "in" lasts until
the last 202, "out" from the first start to the last end. CPU time is from /proc; for "out" it includes the start of the
worker. Look-ups are GET /v1/jobs/{id}, ${lookUpsPerSecond} per second. Single jobs belong to another account; their waits are from their records.`;

/** Slow look-ups are a result, not an error. */
export function listFaults({ placed, lookUps, money, faults }: JobsRun): string[] {
  const counts = [placed.errors, lookUps.placing.failures, lookUps.running.failures];
  return [...counts.flatMap(listErrors), ...money.faults, ...faults];
}

function formatLookUps(name: string, { probes, p50Ms, p99Ms }: LatencySummary, when: string): string {
  const verdict = `${p99Ms >= lookUpTargetMs ? 'NOT below' : 'below'} ${lookUpTargetMs} ms`;
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
