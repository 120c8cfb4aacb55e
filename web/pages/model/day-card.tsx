import { useMemo, useState } from 'preact/hooks';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import {
  modelName,
  summarizeHours,
  useModelHistories,
  type Model,
  type ModelHour,
} from '../../lib/models.ts';
import { Card, Stat } from '../../ui/card.tsx';
import { Chart } from '../../ui/chart.tsx';
import { HourBars, HourTable } from '../../ui/hour-bars.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** The last 24 hours of a model: success, speed and duration by hour. */
export function DayCard({ model }: { readonly model: Model }) {
  const t = useMessages<typeof en>();
  const query = useModelHistories();
  return (
    <Card title={t('day')}>
      <QueryView query={query} loading={<Skeleton lines={5} height="3rem" />}>
        {(histories) => {
          const hours = histories[model.id] ?? [];
          return hours.every(({ requests }) => requests === 0) ? (
            <EmptyState title={t('quietDay')}>{t('quietDayText')}</EmptyState>
          ) : (
            <Day model={model} hours={hours} />
          );
        }}
      </QueryView>
    </Card>
  );
}

function Day({ model, hours }: { readonly model: Model; readonly hours: readonly ModelHour[] }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  const [isTableOpen, setIsTableOpen] = useState(false);
  const { requests, successShare, speed, seconds } = summarizeHours(hours);
  const name = modelName(model);
  return (
    <>
      <div class="stats">
        <Stat label={t('success')}>{successShare === null ? '–' : format.percent(successShare)}</Stat>
        <Stat label={t('requests')}>{format.number(requests)}</Stat>
        {model.type !== 'image' && (
          <Stat label={t('speed')}>
            {speed === null
              ? '–'
              : common('tokensPerSecond', { speed: format.number(speed, { maximumFractionDigits: 0 }) })}
          </Stat>
        )}
        <Stat label={t('duration')}>{seconds === null ? '–' : format.seconds(seconds)}</Stat>
      </div>
      <div class="model-hours">
        <h3>{t('successByHour')}</h3>
        <HourBars name={name} hours={hours} />
        <p class="model-hours-ends small soft">
          <span>{format.time(hours[0]!.hour)}</span>
          <span>{t('now')}</span>
        </p>
        <details onToggle={(event) => setIsTableOpen(event.currentTarget.open)}>
          <summary>{common('asTable')}</summary>
          {isTableOpen && <HourTable name={name} hours={hours} />}
        </details>
      </div>
      <div class="model-charts">
        {model.type !== 'image' && (
          <HourChart
            title={t('speedByHour')}
            hours={hours}
            read={({ tps }) => tps}
            format={(value) => format.number(value, { maximumFractionDigits: 0 })}
          />
        )}
        <HourChart
          title={t('durationByHour')}
          hours={hours}
          read={({ art }) => art}
          format={(value) => format.seconds(value)}
        />
      </div>
    </>
  );
}

function HourChart({
  title,
  hours,
  read,
  format: formatValue,
}: {
  readonly title: string;
  readonly hours: readonly ModelHour[];
  readonly read: (hour: ModelHour) => number | null;
  readonly format: (value: number) => string;
}) {
  const format = useFormat();
  const { times, series } = useMemo(
    () => ({
      times: hours.map(({ hour }) => Date.parse(hour) / 1_000),
      series: [{ name: title, values: hours.map(read), format: formatValue }],
    }),
    // The functions are new with each rendering, and do the same.
    [hours, title],
  );
  return (
    <div class="model-chart">
      <h3>{title}</h3>
      <Chart
        title={title}
        times={times}
        formatTime={(seconds) => format.time(seconds * 1_000)}
        series={series}
        height={170}
      />
    </div>
  );
}
