import { memoryLoad } from './embeddings.ts';
import { memoryMarks, type MemoryRun } from './memory.ts';
import { formatCount, formatWhole } from './report.ts';

const columns = ['', ...memoryMarks.map((mark) => `${mark * 100} %`), 'max', ''];
const widths = [10, ...memoryMarks.map(() => 8), 8, 10];

export function formatMemory(run: MemoryRun): string {
  const rows = run.processes.map(({ process, atMarksMb, peakMb, isFlat }) => [
    `  ${process}`,
    ...atMarksMb.map(formatWhole),
    formatWhole(peakMb),
    isFlat ? 'flat' : 'GROWS',
  ]);
  const perSecond = (run.inputs * 1_000) / run.measuredMs;
  return [
    '',
    `${memoryLoad.title} · ${run.callers} callers · ${formatCount(run.inputs)} inputs · MB of RSS`,
    ...[columns, ...rows].map(formatRow),
    `  in ${Math.round(run.measuredMs / 1_000)} s, ${formatCount(perSecond)} inputs/s · ` +
      `${run.money.charges} charges, one per response. Each mark shows the mean of the preceding tenth of the run.`,
    ...listFaults(run).map((fault) => `  !!! ERROR  ${fault}`),
  ].join('\n');
}

export function countMemoryFaults(run: MemoryRun | null): number {
  return run === null ? 0 : listFaults(run).length;
}

/** Growth of a process is a result, not an error. */
function listFaults({ errors, money }: MemoryRun): string[] {
  return [...Object.entries(errors).map(([reason, count]) => `${count} × ${reason}`), ...money.faults];
}

function formatRow(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
    .join(' ')
    .trimEnd();
}
