import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { readRequests } from '../../admin/read-requests.ts';
import { RequestTable } from '../../admin/request-table.tsx';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { EmptyState } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** Its latest requests. The page of all requests filters them. */
export function RequestsTab({ accountId }: { readonly accountId: string }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const list = useCursorList(['account-requests', accountId], (after, signal) =>
    readRequests({ account: accountId, limit: 20, ...(after === null ? {} : { after }) }, signal),
  );
  const { total = null, has_exact_total: isExact = true } = list.firstPage ?? {};
  const query = `account=${encodeURIComponent(accountId)}`;
  return (
    <>
      {total !== null && total > 0 && (
        <div class="admin-account-tab-head">
          <p class="soft small">
            {t(isExact ? 'requestTotal' : 'requestTotalAtLeast', {
              count: total,
              total: format.number(total),
            })}
          </p>
          <SiteLink href={`/admin/requests?${query}`}>{t('filterRequests')}</SiteLink>
        </div>
      )}
      <p class="small">
        <SiteLink href={`/admin/requests?${query}&outcome=rejected`}>{t('rejectedRequests')}</SiteLink>
      </p>
      <CursorListView
        list={list}
        empty={<EmptyState title={t('noRequests')}>{t('noRequestsText')}</EmptyState>}
      >
        {(rows) => (
          <RequestTable
            rows={rows}
            hasAccount={false}
            hrefOf={(id) => `/admin/requests?${query}&id=${encodeURIComponent(id)}`}
          />
        )}
      </CursorListView>
    </>
  );
}
