import { ModelLink } from '../../admin/links.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Table } from '../../ui/table.tsx';
import { failuresHref } from './hrefs.ts';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

type Traffic = NonNullable<Overview['traffic']>;
type ModelTraffic = Traffic['day']['most_failed'][number];

/** The models with the most failures of the day, with those of the hour. */
export function FailingModels({ traffic: { hour, day } }: { readonly traffic: Traffic }) {
  const t = useMessages<typeof en>();
  const rows = day.most_failed;
  if (rows.length === 0) return <p class="soft">{t('noFailures')}</p>;
  return (
    <Table
      caption={t('mostFailed')}
      keyOf={({ model }) => model}
      rows={rows}
      columns={[
        { name: t('model'), isHeader: true, render: ({ model }) => <ModelLink id={model} /> },
        {
          name: t('hour'),
          isNumber: true,
          render: ({ model }) => (
            <Failures
              traffic={hour.most_failed.find((one) => one.model === model)}
              // The list of the hour has all models only while it is not full.
              absent={hour.most_failed.length < rows.length ? '0' : '–'}
              since={hour.since}
            />
          ),
        },
        {
          name: t('day'),
          isNumber: true,
          render: (traffic) => <Failures traffic={traffic} absent="0" since={day.since} />,
        },
      ]}
    />
  );
}

function Failures({
  traffic,
  absent,
  since,
}: {
  readonly traffic: ModelTraffic | undefined;
  readonly absent: string;
  readonly since: string;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  if (traffic === undefined) return <>{absent}</>;
  const { model, failed, requests } = traffic;
  return (
    <>
      <SiteLink href={failuresHref(since, model)}>
        {t('failedOf', { failed: format.number(failed), requests: format.number(requests) })}
      </SiteLink>
      <span class="admin-overview-note">{format.percent(failed / requests)}</span>
    </>
  );
}
