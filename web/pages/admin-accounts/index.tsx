import '../../admin/accounts/accounts.css';
import './admin-accounts.css';
import { useState } from 'preact/hooks';
import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList } from '../../admin/cursor-list.tsx';
import { useMay } from '../../admin/session.ts';
import { useConsole } from '../../admin/texts.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { AccountSearch } from './account-search.tsx';
import { AccountTable } from './account-table.tsx';
import { CreateAccount } from './create-account.tsx';
import type en from './messages.en.ts';

export default function AdminAccountsPage() {
  const t = useMessages<typeof en>();
  const shared = useConsole();
  const mayCreate = useMay('billing');
  const [isCreating, setIsCreating] = useState(false);
  const [filters, change] = useAddressFilters();
  const search = filters.get('search')?.trim() ?? '';
  const list = useCursorList(['accounts', search], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/accounts', {
        params: {
          query: {
            limit: 50,
            ...(search === '' ? {} : { search: search.slice(0, 200) }),
            ...(after === null ? {} : { after }),
          },
        },
        signal,
      }),
    ),
  );
  return (
    <div class="page admin-accounts">
      <div class="page-head">
        <h1>{t('title')}</h1>
        <div class="admin-accounts-actions">
          <Button icon="refresh" aria-label={shared('refresh')} onClick={() => list.refetch()} />
          {mayCreate && (
            <Button kind="primary" icon="plus" onClick={() => setIsCreating(true)}>
              {t('create')}
            </Button>
          )}
        </div>
      </div>
      <AccountSearch value={search} onChange={(text) => change({ search: text === '' ? null : text })} />
      <section class="card" aria-busy={list.isFetching}>
        <CursorListView
          list={list}
          empty={
            search === '' ? (
              <EmptyState title={t('noAccounts')}>{mayCreate && t('noAccountsText')}</EmptyState>
            ) : (
              <EmptyState title={t('noneFound', { search })}>{t('noneFoundText')}</EmptyState>
            )
          }
        >
          {(rows) => <AccountTable rows={rows} />}
        </CursorListView>
      </section>
      {isCreating && <CreateAccount onClose={() => setIsCreating(false)} />}
    </div>
  );
}
