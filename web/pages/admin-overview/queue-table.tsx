import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Table } from '../../ui/table.tsx';
import { workHref } from './hrefs.ts';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

type Queues = NonNullable<Overview['queues']>;

export const queueNames = ['chat', 'image', 'embedding'] as const;

/** What waits, for how long it has, and for how long it will. */
export function QueueTable({ queues }: { readonly queues: Queues }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <Table
      caption={t('queues')}
      keyOf={({ name }) => name}
      rows={queueNames.map((name) => ({ name, ...queues[name] }))}
      columns={[
        {
          name: t('queue'),
          isHeader: true,
          render: ({ name, workers }) => (
            <>
              <SiteLink href={workHref}>{t(`queue_${name}`)}</SiteLink>
              <span class="admin-overview-note">
                {workers === 0 ? (
                  <Badge tone="bad">{t('noWorkers')}</Badge>
                ) : (
                  t('workersOf', { count: workers })
                )}
              </span>
            </>
          ),
        },
        {
          name: t('waiting'),
          isNumber: true,
          render: ({ waiting, waiting_for_slot: forSlot }) => (
            <>
              {format.number(waiting)}
              {forSlot > 0 && <span class="admin-overview-note">{t('forSlot', { count: forSlot })}</span>}
            </>
          ),
        },
        {
          name: t('oldest'),
          isNumber: true,
          render: ({ waiting, oldest_waiting_seconds: seconds }) =>
            waiting === 0 ? '–' : format.duration(seconds),
        },
        {
          name: t('eta'),
          isNumber: true,
          render: ({ waiting, eta_seconds: seconds }) =>
            waiting === 0 ? '–' : seconds === null ? t('notKnown') : format.duration(seconds),
        },
        {
          name: t('running'),
          isNumber: true,
          isMinor: true,
          render: ({ running }) => format.number(running),
        },
      ]}
    />
  );
}
