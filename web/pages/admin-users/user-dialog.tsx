import { useQuery } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { ApiError } from '../../lib/api-error.ts';
import { useMessages } from '../../lib/language.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { LinkedAccounts } from './linked-accounts.tsx';
import type en from './messages.en.ts';
import { Sessions } from './sessions.tsx';
import { UserActions } from './user-actions.tsx';
import { UserEvents } from './user-events.tsx';
import { UserFacts } from './user-facts.tsx';

export type User = Schema<'AdminUserDetails'>;

const fewEvents = 10;
const manyEvents = 200;

/** Everything about a user. Its address can be sent. @param id of the user, or the address */
export function UserDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const [events, setEvents] = useState(fewEvents);
  const query = useQuery({
    queryKey: ['user', id, events],
    queryFn: ({ signal }) =>
      call(
        adminApi.GET('/v1/admin/users/{user_id}', {
          params: { path: { user_id: id }, query: { events } },
          signal,
        }),
      ),
    placeholderData: (previous) => previous,
  });
  const isMissing = query.error instanceof ApiError && query.error.status === 404;
  return (
    <Dialog title={query.data?.email ?? t('user')} isOpen onClose={onClose} size="large">
      {isMissing ? (
        <EmptyState title={t('missing')}>{t('missingText', { given: id })}</EmptyState>
      ) : (
        <QueryView
          query={query}
          loading={
            <div class="admin-users-loading">
              <Skeleton lines={9} height="1.75rem" />
            </div>
          }
        >
          {(user) => (
            <div class="admin-users-user">
              <UserFacts user={user} />
              <UserActions user={user} />
              <LinkedAccounts user={user} />
              <Sessions user={user} />
              <UserEvents
                events={user.events}
                onMore={
                  events === fewEvents && user.events.length >= fewEvents ? () => setEvents(manyEvents) : null
                }
              />
              <p class="small">
                <SiteLink href={`/admin/audit?resource=${encodeURIComponent(`user:${user.id}`)}`}>
                  {t('toAudit')}
                </SiteLink>
              </p>
            </div>
          )}
        </QueryView>
      )}
    </Dialog>
  );
}
