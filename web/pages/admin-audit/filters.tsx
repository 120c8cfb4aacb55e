import { useQuery } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { resourceTypes } from '../../../shared/admin/admin-action.ts';
import { adminApi, call } from '../../admin/api.ts';
import { SearchField } from '../../admin/search-field.tsx';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { FilterSelect } from '../../ui/filter-select.tsx';
import { OwnPeriod, PeriodSelect } from '../../ui/period-filter.tsx';
import { joinResource, periods, splitResource, useAuditFilter } from './audit-filter.ts';
import type en from './messages.en.ts';

/** Enough for a choice; a link may name any other. */
const maxTokens = 100;

const useTokenNames = () =>
  useQuery({
    queryKey: ['token-names'],
    queryFn: async ({ signal }) =>
      (
        await call(adminApi.GET('/v1/admin/tokens', { params: { query: { limit: maxTokens } }, signal }))
      ).data.map(({ name }) => name),
    staleTime: 60_000,
  });

/** What is looked for. It is in the address, so that it can be kept and sent. */
export function Filters({ children }: { readonly children: ComponentChildren }) {
  const t = useMessages<typeof en>();
  const { filter, isFiltered, setFilter, clear } = useAuditFilter();
  const { token, resource, period } = filter;
  const { type, id } = splitResource(resource);
  const tokens = useTokenNames().data ?? [];
  return (
    <section class="card filters" aria-label={t('filters')}>
      <FilterSelect
        label={t('token')}
        anyLabel={t('allTokens')}
        value={token}
        choices={[
          ...tokens.map((name) => ({ value: name, label: name })),
          { value: 'command', label: t('command') },
        ]}
        onChoose={(name) => setFilter({ token: name })}
      />
      <FilterSelect
        label={t('resource')}
        anyLabel={t('allResources')}
        value={type}
        choices={resourceTypes.map((name) => ({ value: name, label: t(`resource_${name}`) }))}
        onChoose={(name) => setFilter({ resource: joinResource(name ?? '', id) || null })}
      />
      <SearchField
        label={t('resourceId')}
        value={id}
        maxLength={180}
        onText={(text) => setFilter({ resource: joinResource(type, text.trim()) || null })}
      />
      <PeriodSelect
        label={t('period')}
        choices={[...periods, 'own' as const].map((value) => ({ value, label: t(`period_${value}`) }))}
        period={period}
        onChange={setFilter}
      />
      {period.name === 'own' && <OwnPeriod period={period} onChange={setFilter} />}
      <div class="filters-last console-buttons">
        {children}
        {isFiltered && (
          <Button kind="quiet" size="small" icon="close" onClick={clear}>
            {t('clear')}
          </Button>
        )}
      </div>
    </section>
  );
}
