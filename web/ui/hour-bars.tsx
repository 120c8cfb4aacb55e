import { useFormat } from '../lib/format.ts';
import { useCommon } from '../lib/language.tsx';
import { summarizeHours, type ModelHour } from '../lib/models.ts';
import { Table } from './table.tsx';

/** Of a bar in percent of its place: even a rate of 0 can be seen. */
const minHeight = 18;
const goodRate = 90;
const acceptableRate = 70;

function chooseTone(rate: number | null): string {
  if (rate === null) return 'none';
  if (rate > goodRate) return 'good';
  return rate > acceptableRate ? 'warning' : 'bad';
}

/**
 * The success of a model in each of 24 hours, as bars: higher is better, and a stub is an hour without requests. Show
 * `HourTable` beside it for those who cannot see or hover.
 */
export function HourBars({ name, hours }: { readonly name: string; readonly hours: readonly ModelHour[] }) {
  const common = useCommon();
  const format = useFormat();
  const { successShare } = summarizeHours(hours);
  const summary =
    successShare === null
      ? common('noRequests24')
      : common('succeeded24', { rate: format.percent(successShare) });
  return (
    <div class="hour-bars" role="img" aria-label={`${common('successByHour', { name })}. ${summary}`}>
      {hours.map(({ hour, success_rate: rate, requests }) => (
        <span
          key={hour}
          class="hour"
          title={
            rate === null
              ? common('hourWithout', { hour: format.time(hour) })
              : common('hourWithRate', {
                  hour: format.time(hour),
                  rate: format.percent(rate / 100),
                  count: requests,
                })
          }
        >
          <span
            class={`hour-bar ${chooseTone(rate)}`}
            style={{ height: rate === null ? undefined : `${Math.max(rate, minHeight)}%` }}
          />
        </span>
      ))}
    </div>
  );
}

/** The same hours as a table, the newest first. */
export function HourTable({ name, hours }: { readonly name: string; readonly hours: readonly ModelHour[] }) {
  const common = useCommon();
  const format = useFormat();
  return (
    <Table
      caption={common('successByHour', { name })}
      rows={hours.toReversed()}
      keyOf={({ hour }) => hour}
      columns={[
        { name: common('hour'), isHeader: true, render: ({ hour }) => format.dateTime(hour) },
        {
          name: common('successRate'),
          isNumber: true,
          render: ({ success_rate: rate }) =>
            rate === null ? common('noRequests') : format.percent(rate / 100),
        },
        {
          name: common('requestCount'),
          isNumber: true,
          render: ({ requests }) => format.number(requests),
        },
      ]}
    />
  );
}
