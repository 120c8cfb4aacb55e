import { divideCpu, type CpuUse } from '../../harness/clocks/cpu-clock.ts';
import {
  formatMs,
  formatNote,
  formatReport,
  formatCount,
  formatWhole,
  othersColumn,
  Table,
} from '../../harness/table.ts';
import {
  fullCallMs,
  ratioTo,
  targets,
  type BatchResult,
  type BatchRun,
  type BatchScenario,
} from './batch-plan.ts';

interface Row {
  readonly name: string;
  readonly lines: number;
  readonly measuredMs: number;
  readonly cpuUs: Readonly<Record<string, number>>;
  readonly othersShare: number;
}

const parts = ['load', 'vendor', 'api', 'worker', 'redis', 'mongo', 's3'] as const;

const table = new Table<Row>([
  { title: '', cell: ({ name }) => `  ${name}` },
  { title: 'seconds', cell: ({ measuredMs }) => (measuredMs / 1_000).toFixed(2) },
  { title: 'lines/s', cell: ({ lines, measuredMs }) => formatCount((lines * 1_000) / measuredMs) },
  ...parts.map((part, i) => ({
    title: part,
    cell: ({ cpuUs }: Row) => (cpuUs[part] === undefined ? '' : cpuUs[part].toFixed(1)),
    ...(i === 0 && { above: 'CPU µs per line' }),
  })),
  othersColumn(),
]);

function toRow(name: string, lines: number, measuredMs: number, cpu: CpuUse): Row {
  const perLine = Object.entries(divideCpu(cpu, lines)).map(([part, ms]) => [part, ms * 1_000] as const);
  return { name, lines, measuredMs, cpuUs: Object.fromEntries(perLine), othersShare: cpu.othersShare };
}

export function formatBatch({ title, pace }: BatchScenario, result: BatchResult): string {
  const { direct, alone, beside, cancelled, callerAloneP99Ms } = result;
  const caller = beside?.beside ?? null;
  const rows = [
    toRow('direct', alone.lines, direct.measuredMs, direct.cpu),
    toRow('batch', alone.lines, alone.measuredMs, alone.cpu),
    ...(beside === null ? [] : [toRow('beside', beside.lines, beside.measuredMs, beside.cpu)]),
  ];
  const share = (run: BatchRun, target: number, what: string): string => {
    const ratio = ratioTo(direct, run);
    return formatNote(what, `${(100 * ratio).toFixed(1)} %`, `of the direct run; target ${100 * target} %`);
  };
  const { api, worker } = alone.memory;
  const limitMs = callerAloneP99Ms === null ? 0 : fullCallMs(pace) + 3 * callerAloneP99Ms;
  return formatReport(
    `${title} · ${formatCount(alone.lines)} lines`,
    [
      ...table.format(rows),
      share(alone, targets.ratio, 'ratio'),
      ...(beside === null ? [] : [share(beside, targets.ratioBeside, 'beside')]),
      ...(caller === null || callerAloneP99Ms === null
        ? []
        : [
            formatNote(
              'caller',
              `${formatMs(caller.p99Ms)} ms`,
              `p99 of an innocent caller; alone ${formatMs(callerAloneP99Ms)} ms; limit ${formatMs(limitMs)} ms`,
            ),
          ]),
      formatNote('first', `${formatMs(alone.firstResultMs)} ms`, 'until the first result can be read'),
      formatNote('upload', `${formatMs(result.uploadMs)} ms`, 'per file'),
      formatNote(
        'memory',
        `${formatWhole(worker.peakMb)} MB`,
        `of the worker at most, ${formatWhole(worker.beforeMb)} MB before; api ${formatWhole(api.peakMb)} MB, ` +
          `${formatWhole(api.beforeMb)} MB before`,
      ),
      formatNote(
        '',
        `${alone.redisBytesPerLine.toFixed(2)} B`,
        `of Redis per waiting line; target below ${targets.bytesPerLine} B`,
      ),
      ...(cancelled === null
        ? []
        : [
            formatNote(
              'cancel',
              `${formatMs(cancelled.endedMs)} ms`,
              `until it ended; target ${targets.cancelMs} ms + a call of ${formatMs(fullCallMs(pace))} ms; ` +
                `${cancelled.completed} lines completed, ${cancelled.failed} cancelled`,
            ),
          ]),
    ],
    listFaults(result),
  );
}

/** Being slower than the target is a result, not an error. */
export const listFaults = ({ alone, beside, cancelled }: BatchResult): string[] =>
  [alone, beside, cancelled].flatMap((run) => [...(run?.faults ?? [])]);
