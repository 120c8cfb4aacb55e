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
import { FilterSelect } from '../../ui/filter-select.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { AccountSearch } from './account-search.tsx';
import { AccountTable } from './account-table.tsx';
import { CreateAccount } from './create-account.tsx';
import type en from './messages.en.ts';

const readBanned = (text: string | null): boolean | undefined =>
  text === 'true' || text === 'false' ? text === 'true' : undefined;

export default function AdminAccountsPage() {
  const t = useMessages<typeof en>();
  const shared = useConsole();
  const mayCreate = useMay('billing');
  const [isCreating, setIsCreating] = useState(false);
  const [filters, change] = useAddressFilters();
  const search = filters.get('search')?.trim() ?? '';
  const banned = readBanned(filters.get('banned'));
  const isFiltered = search !== '' || banned !== undefined;
  const list = useCursorList(['accounts', search, banned ?? null], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/accounts', {
        params: {
          query: {
            limit: 50,
            ...(search === '' ? {} : { search: search.slice(0, 200) }),
            ...(banned === undefined ? {} : { banned }),
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
      <div class="admin-accounts-filters">
        <AccountSearch value={search} onChange={(text) => change({ search: text === '' ? null : text })} />
        <FilterSelect
          label={t('ban')}
          anyLabel={t('anyState')}
          choices={[
            { value: 'true', label: t('onlyBanned') },
            { value: 'false', label: t('notBanned') },
          ]}
          value={banned === undefined ? '' : String(banned)}
          onChoose={(value) => change({ banned: value })}
        />
      </div>
      <section class="card" aria-busy={list.isFetching}>
        <CursorListView
          list={list}
          empty={
            isFiltered ? (
              <EmptyState
                title={search === '' ? t('noneOfFilter') : t('noneFound', { search })}
                action={<Button onClick={() => change({ search: null, banned: null })}>{t('clear')}</Button>}
              >
                {search !== '' && t('noneFoundText')}
              </EmptyState>
            ) : (
              <EmptyState title={t('noAccounts')}>{mayCreate && t('noAccountsText')}</EmptyState>
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
