import { auditActions } from '../../../shared/account-area/audit-actions.ts';
import type { Schema } from '../../admin/api.ts';
import { AccountLink } from '../../admin/links.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Button } from '../../ui/button.tsx';
import { Time } from '../../ui/money.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

type Event = Schema<'AdminUserEvent'>;

/** What the user did lately, and what was done to the user. */
export function UserEvents({
  events,
  onMore,
}: {
  readonly events: readonly Event[];
  /** Null if there are no more. */
  readonly onMore: (() => void) | null;
}) {
  const t = useMessages<typeof en>();
  return (
    <section class="admin-users-part">
      <h3>{t('events')}</h3>
      {events.length === 0 ? (
        <p class="soft">{t('noEvents')}</p>
      ) : (
        <Table
          caption={t('events')}
          keyOf={(event) => `${event.at} ${event.action} ${event.request_id}`}
          rows={events}
          columns={[
            { name: t('time'), render: ({ at }) => <Time value={at} /> },
            { name: t('event'), isHeader: true, render: (event) => <EventName event={event} /> },
            {
              name: t('account'),
              render: ({ account, account_name: name, label }) =>
                account === null ? (
                  <span class="soft">–</span>
                ) : (
                  <AccountLink id={account} name={name ?? label} />
                ),
            },
            { name: t('address'), isMinor: true, render: ({ address }) => address ?? '–' },
            { name: t('device'), isMinor: true, render: ({ device }) => device ?? '–' },
          ]}
        />
      )}
      {onMore !== null && (
        <p>
          <Button size="small" onClick={onMore}>
            {t('moreEvents')}
          </Button>
        </p>
      )}
    </section>
  );
}

function EventName({ event: { action, outcome } }: { readonly event: Event }) {
  const t = useMessages<typeof en>();
  const name = auditActions.find((one) => one === action);
  return (
    <>
      {name === undefined ? action : t(`event_${name}`)}{' '}
      {outcome === 'failed' && <Badge tone="bad">{t('failed')}</Badge>}
      {outcome === 'started' && <Badge tone="warning">{t('unfinished')}</Badge>}
    </>
  );
}
