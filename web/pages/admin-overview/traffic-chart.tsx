import { useMemo } from 'preact/hooks';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Chart } from '../../ui/chart.tsx';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

/** As high as the figures beside it. */
const chartHeight = 290;

/** Requests of each of 24 hours, and the failures among them. */
export function TrafficChart({ hours }: { readonly hours: NonNullable<Overview['traffic']>['hours'] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const times = useMemo(() => hours.map(({ hour }) => Date.parse(hour) / 1_000), [hours]);
  const series = useMemo(() => {
    // Half a request is no tick of an axis.
    const write = (count: number): string => (Number.isInteger(count) ? format.number(count) : '');
    return [
      { name: t('requests'), values: hours.map(({ requests }) => requests), format: write },
      { name: t('failures'), values: hours.map(({ failed }) => failed), format: write },
    ];
  }, [hours, t, format]);
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  return (
    <>
      <p class="admin-overview-legend" aria-hidden="true">
        <span>{t('requests')}</span>
        <span>{t('failures')}</span>
      </p>
      <Chart
        title={t('chartSummary', {
          requests: format.number(sum(series[0]!.values)),
          failed: format.number(sum(series[1]!.values)),
        })}
        times={times}
        formatTime={(seconds) => format.time(seconds * 1_000)}
        series={series}
        height={chartHeight}
      />
    </>
  );
}
