import { listErrors } from '../../harness/statistics.ts';
import { formatCount, formatReport, formatWhole, Table } from '../../harness/table.ts';
import { memoryMarks, memoryScenario, type MemoryRun, type MemoryUse } from './memory.ts';

const table = new Table<MemoryUse>([
  { title: '', cell: ({ process }) => `  ${process}` },
  ...memoryMarks.map((mark, i) => ({
    title: `${mark * 100} %`,
    cell: ({ atMarksMb }: MemoryUse) => formatWhole(atMarksMb[i]!),
  })),
  { title: 'max', cell: ({ peakMb }) => formatWhole(peakMb) },
  { title: '', cell: ({ isFlat }) => (isFlat ? 'flat' : 'GROWS') },
]);

export function formatMemory(run: MemoryRun): string {
  const perSecond = (run.inputs * 1_000) / run.measuredMs;
  return formatReport(
    `${memoryScenario.title} · ${run.callers} callers · ${formatCount(run.inputs)} inputs · MB of RSS`,
    [
      ...table.format(run.processes),
      `  in ${Math.round(run.measuredMs / 1_000)} s, ${formatCount(perSecond)} inputs/s · ` +
        `${run.money.charges} charges, one per response. Each mark shows the mean of the preceding tenth of the run.`,
    ],
    listFaults(run),
  );
}

/** Growth of a process is a result, not an error. */
export const listFaults = ({ errors, money }: MemoryRun): string[] => [
  ...listErrors(errors),
  ...money.faults,
];
