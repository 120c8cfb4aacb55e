import './admin-codes.css';
import { useState } from 'preact/hooks';
import { refillCodeStates, type RefillCodeStatus } from '../../../shared/contract/admin-terms.ts';
import { adminApi, call } from '../../admin/api.ts';
import { CursorListView, useCursorList, type CursorList } from '../../admin/cursor-list.tsx';
import { RefreshButton } from '../../admin/refresh-button.tsx';
import { useMay } from '../../admin/session.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { BatchCard } from './batch-card.tsx';
import { CodeTable, type Code } from './code-table.tsx';
import { CreateDialog } from './create-dialog.tsx';
import type en from './messages.en.ts';

const readState = (text: string | null): RefillCodeStatus | null =>
  refillCodeStates.find((state) => state === text) ?? null;

export default function AdminCodesPage() {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const [isCreating, setIsCreating] = useState(false);
  const mayCreate = useMay('billing');
  const state = readState(filters.get('status'));
  const batch = filters.get('batch');
  const list = useCodes(state, batch);
  return (
    <div class="page">
      <div class="page-head">
        <div>
          <h1>{t('title')}</h1>
          <p>{t('intro')}</p>
        </div>
        <div class="admin-codes-actions">
          <RefreshButton />
          {mayCreate && (
            <Button kind="primary" icon="plus" onClick={() => setIsCreating(true)}>
              {t('create')}
            </Button>
          )}
        </div>
      </div>
      {batch !== null && <BatchCard key={batch} batch={batch} onLeave={() => change({ batch: null })} />}
      <Tabs
        label={t('byState')}
        value={state ?? 'all'}
        onChange={(value) => change({ status: value === 'all' ? null : value })}
        list={(['all', ...refillCodeStates] as const).map((value) => ({
          value,
          label: t(`list_${value}`),
          content: <CodeList list={list} state={state} batch={batch} />,
        }))}
      />
      {isCreating && (
        <CreateDialog
          onClose={() => setIsCreating(false)}
          onShowBatch={(created) => change({ batch: created, status: null })}
        />
      )}
    </div>
  );
}

function useCodes(state: RefillCodeStatus | null, batch: string | null) {
  return useCursorList(['codes', state, batch], (after, signal) =>
    call(
      adminApi.GET('/v1/admin/codes', {
        params: {
          query: {
            limit: 50,
            ...(state === null ? {} : { status: state }),
            ...(batch === null ? {} : { batch }),
            ...(after === null ? {} : { after }),
          },
        },
        signal,
      }),
    ),
  );
}

function CodeList({
  list,
  state,
  batch,
}: {
  readonly list: CursorList<Code>;
  readonly state: RefillCodeStatus | null;
  readonly batch: string | null;
}) {
  const t = useMessages<typeof en>();
  const isFiltered = state !== null || batch !== null;
  return (
    <section class="card" aria-busy={list.isFetching}>
      <CursorListView
        list={list}
        empty={
          <EmptyState title={t(isFiltered ? 'noneHere' : 'none')}>
            {isFiltered ? undefined : t('noneText')}
          </EmptyState>
        }
      >
        {(rows) => <CodeTable rows={rows} isOneBatch={batch !== null} />}
      </CursorListView>
    </section>
  );
}
