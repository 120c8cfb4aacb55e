import type { ComponentChildren } from 'preact';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat, type Format } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { failuresHref, rejectedHref } from './hrefs.ts';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

type Period = NonNullable<Overview['traffic']>['hour'];

interface Figure {
  readonly name: string;
  readonly value: (period: Period) => ComponentChildren;
  readonly note: (period: Period) => ComponentChildren;
  /** Whether the figure is bad news. */
  readonly isBad?: (period: Period) => boolean;
}

const none = '–';

const seconds = (format: Format, value: number | null): string =>
  value === null ? none : format.seconds(value);

/** The last hour beside the last day. */
export function TrafficTable({ traffic }: { readonly traffic: NonNullable<Overview['traffic']> }) {
  const t = useMessages<typeof en>();
  const figures = useFigures();
  const periods = [traffic.hour, traffic.day];
  return (
    <>
      <table class="admin-overview-figures">
        <caption class="unseen">{t('traffic')}</caption>
        <thead>
          <tr>
            <td />
            <th scope="col">{t('hour')}</th>
            <th scope="col">{t('day')}</th>
          </tr>
        </thead>
        <tbody>
          {figures.map(({ name, value, note, isBad }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {periods.map((period, i) => (
                <td key={i} class={isBad?.(period) === true ? 'bad' : undefined}>
                  <span class="admin-overview-value">{value(period)}</span>
                  <span class="admin-overview-note">{note(period)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <details class="admin-overview-counted">
        <summary>{t('whatCounts')}</summary>
        <p>{t('linesCount')}</p>
        <p>
          {t.nodes('rejectedText', {
            list: <SiteLink href={rejectedHref}>{t('rejectedList')}</SiteLink>,
          })}
        </p>
      </details>
    </>
  );
}

function useFigures(): readonly Figure[] {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return [
    {
      name: t('requests'),
      value: ({ all }) => format.number(all.requests),
      note: ({ all }) => t('rejected', { count: all.rejected }),
    },
    {
      name: t('failures'),
      value: ({ all, since }) =>
        all.failed === 0 ? (
          format.number(0)
        ) : (
          <SiteLink href={failuresHref(since)}>{format.number(all.failed)}</SiteLink>
        ),
      note: ({ all }) => (all.requests === 0 ? none : format.percent(all.failed / all.requests)),
      isBad: ({ all }) => all.failed > 0,
    },
    {
      name: t('duration'),
      value: ({ all }) => seconds(format, all.median_seconds),
      note: ({ all }) => t('p95', { time: seconds(format, all.p95_seconds) }),
    },
    {
      name: t('firstToken'),
      value: ({ all }) => seconds(format, all.first_token_median_seconds),
      note: ({ all }) => t('p95', { time: seconds(format, all.first_token_p95_seconds) }),
    },
    {
      name: t('spend'),
      value: ({ all }) => <Sum value={all.cost} />,
      note: ({ all }) =>
        all.vendor_cost === null
          ? all.requests === 0
            ? none
            : t('noVendorCost')
          : t.nodes('vendorCost', { sum: <Sum value={all.vendor_cost} /> }),
    },
    {
      name: t('margin'),
      value: ({ all }) => (all.margin === null ? none : <Sum value={all.margin} />),
      note: ({ all }) =>
        all.margin === null || all.vendor_cost === null
          ? none
          : writeShare(format, all.margin, all.margin + all.vendor_cost),
      isBad: ({ all }) => (all.margin ?? 0) < 0,
    },
  ];
}

/** From this sum on, kopecks do not matter at a glance. */
const wholeFrom = 1_000;

/** A sum to read from afar; all digits on hover. */
function Sum({ value }: { readonly value: number }) {
  const format = useFormat();
  return (
    <span class="money" title={format.exactMoney(value)}>
      {Math.abs(value) < wholeFrom ? format.money(value) : format.price(Math.round(value))}
    </span>
  );
}

/** The margin as a share of what those requests brought. */
const writeShare = (format: Format, margin: number, income: number): string =>
  income > 0 ? format.percent(margin / income) : none;
