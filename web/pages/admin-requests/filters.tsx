import { requestOutcomes } from '../../../shared/contract/request-terms.ts';
import { useQuery } from '@tanstack/preact-query';
import { adminApi, call } from '../../admin/api.ts';
import { SearchField } from '../../admin/search-field.tsx';
import { changePeriod } from '../../lib/address-period.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { FilterSelect } from '../../ui/filter-select.tsx';
import { OwnPeriod, PeriodSelect } from '../../ui/period-filter.tsx';
import { AccountFilter } from './account-filter.tsx';
import type en from './messages.en.ts';
import { periods, useRequestFilter } from './request-filter.ts';

/** Switched-off models may still be in the log. */
const useModelIds = () =>
  useQuery({
    queryKey: ['all-models'],
    queryFn: async ({ signal }) => {
      const { data } = await call(
        adminApi.GET('/v1/models', { params: { query: { active: 'all' } }, signal }),
      );
      return (data ?? []).map(({ id }) => id);
    },
    staleTime: 300_000,
  });

/** Of the catalog, in its order. */
const useUpstreams = () =>
  useQuery({
    queryKey: ['upstream-names'],
    queryFn: async ({ signal }) => {
      const { upstreams } = await call(adminApi.GET('/v1/admin/overview', { signal }));
      return (upstreams ?? []).map(({ name }) => name);
    },
    staleTime: 300_000,
  });

interface FilterProps {
  /** Empty for all. */
  readonly value: string;
  readonly onChoose: (value: string | null) => void;
}

const toChoice = (id: string) => ({ value: id, label: id });

export function ModelFilter(filter: FilterProps) {
  const t = useMessages<typeof en>();
  const choices = (useModelIds().data ?? []).map(toChoice);
  return <FilterSelect {...filter} label={t('model')} anyLabel={t('allModels')} choices={choices} />;
}

export function UpstreamFilter(filter: FilterProps) {
  const t = useMessages<typeof en>();
  const choices = (useUpstreams().data ?? []).map(toChoice);
  return <FilterSelect {...filter} label={t('upstream')} anyLabel={t('allUpstreams')} choices={choices} />;
}

/** What is looked for. It is in the address, so that it can be kept and sent. */
export function Filters() {
  const t = useMessages<typeof en>();
  const { filter, setFilter, open } = useRequestFilter();
  const { account, model, upstream, outcome, period } = filter;
  return (
    <section class="card filters" aria-label={t('filters')}>
      <div class="filters-find">
        <SearchField
          label={t('findById')}
          placeholder={t('findByIdHint')}
          onText={(text) => {
            if (text.trim() !== '') open(text.trim());
          }}
        />
      </div>
      <AccountFilter value={account} onChoose={(id) => setFilter({ account: id })} />
      <ModelFilter value={model} onChoose={(id) => setFilter({ model: id })} />
      <UpstreamFilter value={upstream} onChoose={(name) => setFilter({ upstream: name })} />
      <FilterSelect
        label={t('outcome')}
        anyLabel={t('allOutcomes')}
        value={outcome}
        choices={requestOutcomes.map((value) => ({ value, label: t(`outcome_${value}`) }))}
        onChoose={(value) => setFilter({ outcome: value })}
      />
      <PeriodSelect
        label={t('period')}
        choices={[...periods, 'own' as const].map((value) => ({ value, label: t(`period_${value}`) }))}
        period={period}
        onChange={setFilter}
      />
      {period.name === 'own' && <OwnPeriod period={period} onChange={setFilter} />}
      <Shortcuts />
    </section>
  );
}

/** What is looked for most often. Each can be pressed again. */
function Shortcuts() {
  const t = useMessages<typeof en>();
  const { filter, isFiltered, setFilter, clear } = useRequestFilter();
  const { period, outcome } = filter;
  const isErrors = outcome === 'error';
  return (
    <div class="filters-last console-buttons admin-requests-shortcuts">
      {(['hour', 'today'] as const).map((name) => (
        <Button
          key={name}
          size="small"
          aria-pressed={period.name === name}
          onClick={() => setFilter(changePeriod(period.name === name ? 'all' : name, 'all'))}
        >
          {t(`period_${name}`)}
        </Button>
      ))}
      <Button
        size="small"
        aria-pressed={isErrors}
        onClick={() => setFilter({ outcome: isErrors ? null : 'error' })}
      >
        {t('onlyErrors')}
      </Button>
      {isFiltered && (
        <Button kind="quiet" size="small" icon="close" onClick={clear}>
          {t('clear')}
        </Button>
      )}
    </div>
  );
}
