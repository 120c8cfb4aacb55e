import { useRef } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { useConsole } from '../../admin/texts.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { lazy } from '../../lib/lazy.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { nameAction } from './action-name.ts';
import { selectAt, useAuditFilter } from './audit-filter.ts';
import { Filters } from './filters.tsx';
import type en from './messages.en.ts';
import { Outcome, type AuditEvent } from './outcome.tsx';
import { Resource } from './resource.tsx';
import { summarizeChange } from './summarize-change.ts';

const EventDialog = lazy(
  async () => (await import('./event-dialog.tsx')).EventDialog,
  () => null,
);

const pageSize = 50;

/** The changes that operators have made, newest first. */
export function Changes() {
  const common = useConsole();
  const { timeZone } = useFormat();
  const { filter, openId } = useAuditFilter();
  // Periods that end now begin at the same time on all pages.
  const selected = useRef({});
  const list = useCursorList(['audit', filter], (after, signal) => {
    if (after === null) selected.current = selectAt(filter, Date.now(), timeZone);
    const query = { ...selected.current, limit: pageSize, ...(after === null ? {} : { after }) };
    return call(adminApi.GET('/v1/admin/audit', { params: { query }, signal }));
  });
  return (
    <div class="admin-audit-view">
      <Filters>
        <Button size="small" icon="refresh" busy={list.isFetching} onClick={() => list.refetch()}>
          {common('refresh')}
        </Button>
      </Filters>
      <section class="card" aria-busy={list.isFetching}>
        <CursorListView list={list} empty={<Nothing />}>
          {(rows) => <Events rows={rows} />}
        </CursorListView>
      </section>
      {openId !== '' && <EventDialog id={openId} list={list} />}
    </div>
  );
}

function Nothing() {
  const t = useMessages<typeof en>();
  const { isFiltered, clear } = useAuditFilter();
  if (!isFiltered) return <EmptyState title={t('nothingYet')}>{t('nothingYetText')}</EmptyState>;
  return (
    <EmptyState title={t('nothingFound')} action={<Button onClick={clear}>{t('clear')}</Button>}>
      {t('nothingFoundText')}
    </EmptyState>
  );
}

function Events({ rows }: { readonly rows: readonly AuditEvent[] }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { hrefOf } = useAuditFilter();
  return (
    <div class="row-links admin-audit-table">
      <Table
        caption={t('title')}
        keyOf={({ id }) => id}
        rows={rows}
        columns={[
          {
            name: t('action'),
            isHeader: true,
            render: (event) => {
              const { id, action, at, reason } = event;
              return (
                <>
                  <SiteLink href={hrefOf(id)} class="row-link">
                    {nameAction(action, t)}
                  </SiteLink>
                  <Summary event={event} />
                  {reason !== null && <span class="admin-audit-summary">{t('because', { reason })}</span>}
                  <span class="admin-audit-note admin-audit-beside">{format.recentTime(at)}</span>
                </>
              );
            },
          },
          { name: t('resource'), render: (event) => <Resource event={event} /> },
          { name: t('token'), render: (event) => <Actor event={event} /> },
          { name: t('outcome'), isMinor: true, render: ({ outcome }) => <Outcome outcome={outcome} /> },
          {
            name: t('time'),
            isMinor: true,
            render: ({ at }) => (
              <time dateTime={at} title={format.exactTime(at)}>
                {format.recentTime(at)}
              </time>
            ),
          },
        ]}
      />
    </div>
  );
}

/** What was changed, beside its name. */
function Summary({ event }: { readonly event: AuditEvent }) {
  const t = useMessages<typeof en>();
  const text = summarizeChange(event, t, useFormat());
  return text === '' ? null : <span class="admin-audit-summary">{text}</span>;
}

/** The token, or who gave the command. */
function Actor({ event: { token, os_user: user } }: { readonly event: AuditEvent }) {
  const t = useMessages<typeof en>();
  if (token !== 'command') return <>{token}</>;
  return (
    <>
      {t('command')}
      {user !== null && <span class="admin-audit-note">{user}</span>}
    </>
  );
}
