import { useMessages } from '../../lib/language.tsx';
import { Time } from '../../ui/money.tsx';
import { Table } from '../../ui/table.tsx';
import type en from './messages.en.ts';
import type { User } from './user-dialog.tsx';

export function Sessions({ user }: { readonly user: User }) {
  const t = useMessages<typeof en>();
  return (
    <section class="admin-users-part">
      <h3>{t('sessions')}</h3>
      {user.sessions.length === 0 ? (
        <p class="soft">{t('noSessions')}</p>
      ) : (
        <Table
          caption={t('sessions')}
          keyOf={({ id }) => id}
          rows={user.sessions}
          columns={[
            { name: t('device'), isHeader: true, render: ({ device }) => device ?? t('unknownDevice') },
            {
              name: t('address'),
              render: ({ address_last_used: last, address_created: first }) => last ?? first ?? '–',
            },
            { name: t('lastUsed'), render: ({ last_used_at: time }) => <Time value={time} style="ago" /> },
            { name: t('began'), isMinor: true, render: ({ created_at: time }) => <Time value={time} /> },
            { name: t('ends'), isMinor: true, render: ({ expires_at: time }) => <Time value={time} /> },
          ]}
        />
      )}
    </section>
  );
}
