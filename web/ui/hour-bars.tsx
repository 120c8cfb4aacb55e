import { useFormat } from '../lib/format.ts';
import { useCommon } from '../lib/language.tsx';
import { summarizeHours, type ModelHour } from '../lib/models.ts';

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
  const label = common('successByHour', { name });
  return (
    <div class="table-scroll" role="region" aria-label={label} tabIndex={0}>
      <table class="table">
        <caption class="unseen">{label}</caption>
        <thead>
          <tr>
            <th scope="col">{common('hour')}</th>
            <th scope="col" class="number">
              {common('successRate')}
            </th>
            <th scope="col" class="number">
              {common('requestCount')}
            </th>
          </tr>
        </thead>
        <tbody>
          {hours.toReversed().map(({ hour, success_rate: rate, requests }) => (
            <tr key={hour}>
              <th scope="row">{format.dateTime(hour)}</th>
              <td class="number">{rate === null ? common('noRequests') : format.percent(rate / 100)}</td>
              <td class="number">{format.number(requests)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
