import { useQuery } from '@tanstack/preact-query';
import { adminApi, call } from '../../admin/api.ts';
import type { CursorList } from '../../admin/cursor-list.tsx';
import { ListTurn } from '../../admin/list-turn.tsx';
import type { AdminRequest } from '../../admin/request-table.tsx';
import { ApiError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Notice } from '../../ui/notice.tsx';
import { EmptyState, QueryView, Skeleton } from '../../ui/states.tsx';
import { Causes } from './causes.tsx';
import { Cost } from './cost.tsx';
import { Facts } from './facts.tsx';
import type en from './messages.en.ts';
import { Neighbours } from './neighbours.tsx';
import { useRequestFilter } from './request-filter.ts';
import { Waterfall } from './waterfall.tsx';
import { writeTicket } from './write-ticket.ts';

/** Everything about a request, over the list. Its address can be sent to a colleague. */
export function RequestDialog({
  id,
  list,
}: {
  readonly id: string;
  readonly list: CursorList<AdminRequest>;
}) {
  const t = useMessages<typeof en>();
  const { open } = useRequestFilter();
  const listed = list.rows?.find((row) => row.id === id);
  const query = useQuery({
    queryKey: ['request', id],
    queryFn: ({ signal }) =>
      call(adminApi.GET('/v1/admin/requests/{request_id}', { params: { path: { request_id: id } }, signal })),
    // The list does not say how often it was replayed.
    ...(listed === undefined ? {} : { placeholderData: listed }),
    staleTime: 60_000,
  });
  const isMissing = query.error instanceof ApiError && query.error.status === 404;
  return (
    <Dialog
      title={t('request')}
      isOpen
      onClose={() => open(null)}
      size="large"
      actions={<ListTurn id={id} list={list} onTurn={open} />}
    >
      <div class="admin-requests-details">
        {isMissing ? (
          <EmptyState title={t('nothingFound')}>
            <code>{id}</code>
            <p>{t('noSuchRequest')}</p>
          </EmptyState>
        ) : (
          <QueryView query={query} loading={<Skeleton lines={10} height="2rem" />}>
            {(row) => <RequestView key={row.id} row={row} isWhole={!query.isPlaceholderData} />}
          </QueryView>
        )}
      </div>
    </Dialog>
  );
}

function RequestView({
  row,
  isWhole,
}: {
  readonly row: AdminRequest;
  /** False for a row of a list, which says less. */
  readonly isWhole: boolean;
}) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { id, is_expired: isExpired } = row;
  const link = `${location.origin}/admin/requests?id=${encodeURIComponent(id)}`;
  return (
    <>
      <div class="admin-requests-head">
        <p class="admin-requests-id">
          <code>{id}</code>
          <CopyButton text={id} label={t('copyId')} />
        </p>
        <p class="admin-requests-copies">
          <CopyButton text={writeTicket(row, link, t, format)} label={t('copyTicket')} isLabelled />
          <CopyButton text={link} label={t('copyLink')} isLabelled />
        </p>
      </div>
      {isExpired ? (
        <Notice title={t('expired')}>
          <p>{t('expiredText')}</p>
        </Notice>
      ) : (
        <>
          <Causes row={row} />
          {row.outcome !== 'rejected' && <Waterfall row={row} />}
        </>
      )}
      <Facts row={row} isWhole={isWhole} />
      {row.outcome !== 'rejected' && <Cost row={row} />}
      <Neighbours row={row} />
    </>
  );
}
