import { useMemo } from 'preact/hooks';
import type { DailyStat } from '../../lib/daily-stats.ts';
import { useFormat, type Format } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Card } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import type en from './messages.en.ts';
import { sumByDay } from './usage.ts';

/** What was spent and requested on each of 30 days. */
export function UsageCharts({ stats }: { readonly stats: readonly DailyStat[] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { times, spend, allSpend, requests } = useMemo(() => sumByDay(stats), [stats]);
  const all = {
    spend: format.money(allSpend),
    requests: format.number(requests.reduce((sum, count) => sum + count, 0)),
  };
  return (
    <div class="home-charts">
      <DayChart title={t('spendByDay')} sum={all.spend} times={times} values={spend} write={format.money} />
      <DayChart
        title={t('requestsByDay')}
        sum={all.requests}
        times={times}
        values={requests}
        write={format.number}
      />
    </div>
  );
}

const readDay = (format: Format, seconds: number): string =>
  format.day(new Date(seconds * 1_000).toISOString().slice(0, 10));

function DayChart({
  title,
  sum,
  times,
  values,
  write,
}: {
  readonly title: string;
  readonly sum: string;
  readonly times: readonly number[];
  readonly values: readonly number[];
  readonly write: (value: number) => string;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const series = useMemo(
    () => [{ name: title, values, format: (value: number) => write(value) }],
    [title, values, write],
  );
  const highest = Math.max(...values);
  const best = times[values.indexOf(highest)]!;
  const summary = t('chartSummary', {
    title,
    sum,
    day: readDay(format, best),
    highest: write(highest),
  });
  return (
    <Card title={title}>
      <Chart
        title={summary}
        times={times}
        formatTime={(seconds) => readDay(format, seconds)}
        series={series}
        height={200}
      />
    </Card>
  );
}
