import type { Schema } from '../../admin/api.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Time } from '../../ui/money.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';

export function UserTable({ rows }: { readonly rows: readonly Schema<'AdminUser'>[] }) {
  const t = useMessages<typeof en>();
  return (
    <Table
      caption={t('title')}
      keyOf={({ id }) => id}
      rows={rows}
      columns={[
        {
          name: t('email'),
          isHeader: true,
          render: ({ id, email }) => (
            <SiteLink href={`/admin/users?user=${encodeURIComponent(id)}`} class="admin-users-link">
              {email}
            </SiteLink>
          ),
        },
        {
          name: t('state'),
          render: ({ banned, ban_reason: reason }) =>
            banned ? (
              <span title={reason ?? undefined}>
                <Badge tone="bad">{t('banned')}</Badge>
              </span>
            ) : (
              <Badge tone="good">{t('active')}</Badge>
            ),
        },
        { name: t('signedUp'), isMinor: true, render: ({ created_at: time }) => <Time value={time} /> },
        {
          name: t('lastSignIn'),
          render: ({ last_login_at: time }) =>
            time === null ? <span class="soft">{t('never')}</span> : <Time value={time} style="ago" />,
        },
        { name: t('timeZone'), isMinor: true, render: ({ timezone }) => timezone },
        { name: t('language'), isMinor: true, render: ({ language }) => language },
      ]}
    />
  );
}
