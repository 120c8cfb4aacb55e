import { adminApi, call, type Schema } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Time } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table, type Column } from '../../ui/table.tsx';
import { listChanges } from './list-changes.ts';
import type en from './messages.en.ts';
import { nameField, writeValue } from './write-change.ts';

type Event = Schema<'AdminAuditEvent'>;

/** What operators have changed, by the audit log. */
export function ChangesTab({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const columns = useColumns();
  const list = useCursorList(['account-changes', accountId], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/audit', {
        params: {
          query: { resource: `account:${accountId}`, limit: 20, ...(after === null ? {} : { after }) },
        },
        signal,
      }),
    ),
  );
  return (
    <CursorListView list={list} empty={<EmptyState title={t('noChanges')}>{t('noChangesText')}</EmptyState>}>
      {(rows) => <Table caption={t('tab_changes')} columns={columns} rows={rows} keyOf={({ id }) => id} />}
    </CursorListView>
  );
}

const actions = [
  'create',
  'update',
  'credit',
  'ban',
  'unban',
  'rotate-key',
  'webhook-secret',
  'user.unlink',
] as const;

function useColumns(): readonly Column<Event>[] {
  const t = useMessages<typeof en>();
  return [
    { name: t('time'), isMinor: true, render: ({ at }) => <Time value={at} style="recent" /> },
    { name: t('token'), isMinor: true, render: ({ token, os_user: user }) => user ?? token },
    { name: t('action'), isHeader: true, render: (event) => <Action event={event} /> },
    { name: t('changeText'), render: (event) => <Fields event={event} /> },
  ];
}

function Action({ event: { id, at, action, outcome, error, token } }: { readonly event: Event }) {
  const t = useMessages<typeof en>();
  const known = actions.find((name) => action === name || action === `account.${name}`);
  return (
    <span class="admin-account-state">
      <SiteLink href={`/admin/audit?id=${encodeURIComponent(id)}`} class="id-link">
        {known === undefined ? action : t(`action_${known}`)}
      </SiteLink>
      <span class="admin-account-beside">
        <Time value={at} style="recent" />
        <br />
        {token}
      </span>
      {outcome === 'failed' && <Badge tone="bad">{t('failedChange')}</Badge>}
      {outcome === 'started' && <Badge tone="warning">{t('unknownChange')}</Badge>}
      {error !== null && <span class="soft small">{error}</span>}
    </span>
  );
}

function Fields({ event }: { readonly event: Event }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  return (
    <ul class="admin-account-changes">
      {listChanges(event).map(({ name, before, after }) => (
        <li key={name}>
          <span class="soft">{nameField(name, t)}: </span>
          {before !== undefined && <>{writeValue(name, before, t, format)} → </>}
          {writeValue(name, after, t, format)}
        </li>
      ))}
      {event.reason !== null && (
        <li>
          <span class="soft">{t('fieldReason')}: </span>
          {event.reason}
        </li>
      )}
    </ul>
  );
}
