import { useQuery } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { adminApi, call } from '../../admin/api.ts';
import type { CursorList } from '../../admin/cursor-list.tsx';
import { ListTurn } from '../../admin/list-turn.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { nameAction } from './action-name.ts';
import { useAuditFilter } from './audit-filter.ts';
import { Difference } from './difference-table.tsx';
import type en from './messages.en.ts';
import { Outcome, type AuditEvent } from './outcome.tsx';
import { Resource } from './resource.tsx';

/** Everything about a change. Its address can be sent to a colleague. */
export function EventDialog({ id, list }: { readonly id: string; readonly list: CursorList<AuditEvent> }) {
  const t = useMessages<typeof en>();
  const { open } = useAuditFilter();
  const listed = list.rows?.find((event) => event.id === id);
  const query = useQuery({
    queryKey: ['audit-event', id],
    queryFn: ({ signal }) =>
      call(adminApi.GET('/v1/admin/audit/{event_id}', { params: { path: { event_id: id } }, signal })),
    ...(listed === undefined ? {} : { initialData: listed }),
    staleTime: 60_000,
  });
  const { data } = query;
  return (
    <Dialog
      title={data === undefined ? t('change') : nameAction(data.action, t)}
      isOpen
      onClose={() => open(null)}
      size="large"
      actions={<ListTurn id={id} list={list} onTurn={open} />}
    >
      <div class="admin-audit-details">
        <QueryView query={query} loading={<Skeleton lines={6} height="2rem" />}>
          {(event) => <EventView event={event} />}
        </QueryView>
      </div>
    </Dialog>
  );
}

const Fact = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

function EventView({ event }: { readonly event: AuditEvent }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { before, after, error, reason, request_id: requestId, os_user: user, address } = event;
  return (
    <>
      <dl class="facts">
        <Fact name={t('outcome')}>
          <Outcome outcome={event.outcome} />
        </Fact>
        <Fact name={t('resource')}>
          <Resource event={event} />
        </Fact>
        {reason !== null && <Fact name={t('reason')}>{reason}</Fact>}
        <Fact name={t('token')}>{event.token === 'command' ? t('command') : event.token}</Fact>
        <Fact name={t('time')}>{format.exactTime(event.at)}</Fact>
        {user !== null && <Fact name={t('osUser')}>{user}</Fact>}
        {address !== null && <Fact name={t('address')}>{address}</Fact>}
        {requestId !== null && (
          <Fact name={t('call')}>
            <code>{requestId}</code> <CopyButton text={requestId} label={t('copyCall')} />
          </Fact>
        )}
      </dl>
      {error !== null && <p class="admin-audit-error">{error}</p>}
      {event.outcome === 'started' && <p class="soft">{t('startedText')}</p>}
      {before === null && after === null ? (
        <p class="soft">{t('noFields')}</p>
      ) : (
        <Difference before={before} after={after} />
      )}
    </>
  );
}
