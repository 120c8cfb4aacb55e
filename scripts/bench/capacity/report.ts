import type { LoadResult } from '../load-plan.ts';
import type { Options } from '../options.ts';
import type { Programs } from '../programs.ts';

/** What a scenario needs to run. */
export interface CapacityRun {
  readonly programs: Programs;
  readonly dir: string;
  readonly options: Options;
  readonly onProgress: (text: string) => void;
}

export interface CapacityResult {
  /** The report, without its title. */
  readonly lines: readonly string[];
  /** The same for `--json`. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly faults: readonly string[];
}

export function formatTable(columns: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map((name, i) =>
    i === 0 ? Math.max(...rows.map(([first = '']) => first.length)) : Math.max(name.length, 8),
  );
  const formatRow = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd();
  return [columns, ...rows].map(formatRow);
}

export const listLoadFaults = ({ errors }: LoadResult): string[] =>
  Object.entries(errors).map(([reason, count]) => `${count} × ${reason}`);
