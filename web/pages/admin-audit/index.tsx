import { adminApi, call, type Schema } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Time } from '../../ui/money.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

export default function AdminAuditPage() {
  const t = useMessages<typeof en>();
  const list = useCursorList(['audit'], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/audit', {
        params: { query: { limit: 50, ...(after === null ? {} : { after }) } },
        signal,
      }),
    ),
  );
  return (
    <div class="page">
      <div class="page-head">
        <h1>{t('title')}</h1>
      </div>
      <section class="card" aria-busy={list.isFetching}>
        <CursorListView list={list}>{(rows) => <Events rows={rows} />}</CursorListView>
      </section>
    </div>
  );
}

function Events({ rows }: { readonly rows: readonly Schema<'AdminAuditEvent'>[] }) {
  const t = useMessages<typeof en>();
  return (
    <Table
      caption={t('title')}
      keyOf={({ id }) => id}
      rows={rows}
      columns={[
        { name: t('time'), render: ({ at }) => <Time value={at} /> },
        { name: t('token'), render: ({ token }) => token },
        { name: t('action'), isHeader: true, render: ({ action }) => action },
        { name: t('resource'), render: ({ resource }) => <code>{resource}</code> },
        { name: t('outcome'), render: ({ outcome }) => outcome },
      ]}
    />
  );
}
