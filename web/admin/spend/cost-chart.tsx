import { useMemo } from 'preact/hooks';
import { secondsOfDay } from '../../lib/daily-stats.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Chart } from '../../ui/chart.tsx';
import { costByDay, type SpendRow } from './spend.ts';
import type texts from './texts.en.ts';

/** What was paid on each day. */
export function CostChart({
  title,
  days,
  rows,
}: {
  readonly title: string;
  /** The days of UTC, oldest first. */
  readonly days: readonly string[];
  /** By day, and whatever else. */
  readonly rows: readonly SpendRow[];
}) {
  const t = useMessages<typeof texts>();
  const format = useFormat();
  const times = useMemo(() => days.map(secondsOfDay), [days]);
  const series = useMemo(
    () => [
      {
        name: t('spend_paid'),
        values: costByDay(rows, days),
        format: (cost: number) => format.money(cost),
      },
    ],
    [days, rows, format, t],
  );
  return (
    <Chart
      title={title}
      times={times}
      formatTime={(seconds) => format.day(new Date(seconds * 1_000).toISOString().slice(0, 10))}
      series={series}
      height={200}
    />
  );
}
