import { requestOutcomes } from '../../../shared/contract/request-terms.ts';
import { switchAccount, useAccounts } from '../../lib/accounts.ts';
import { useMessages } from '../../lib/language.tsx';
import { modelName, useModels } from '../../lib/models.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Select } from '../../ui/field.tsx';
import { FilterSelect } from '../../ui/filter-select.tsx';
import { OwnPeriod, PeriodSelect } from '../../ui/period-filter.tsx';
import type en from './messages.en.ts';
import { periods, useRequestFilter } from './request-filter.ts';

/** What is looked for. It is in the address, so that it can be kept and sent. */
export function Filters() {
  const t = useMessages<typeof en>();
  const { filter, isFiltered, setFilter, clear } = useRequestFilter();
  const { model, outcome, period } = filter;
  return (
    <section class="card filters" aria-label={t('filters')}>
      <AccountFilter />
      <ModelFilter value={model} onChoose={(value) => setFilter({ model: value, request_id: null })} />
      <FilterSelect
        label={t('outcome')}
        anyLabel={t('allOutcomes')}
        value={outcome}
        choices={requestOutcomes.map((value) => ({ value, label: t(`outcome_${value}`) }))}
        onChoose={(value) => setFilter({ outcome: value, request_id: null })}
      />
      <PeriodSelect
        label={t('period')}
        choices={[...periods, 'own' as const].map((value) => ({ value, label: t(`period_${value}`) }))}
        period={period}
        onChange={(changes) => setFilter({ ...changes, request_id: null })}
      />
      <IdFilter />
      {period.name === 'own' && (
        <OwnPeriod period={period} onChange={(changes) => setFilter({ ...changes, request_id: null })} />
      )}
      {isFiltered && (
        <p class="filters-last">
          <Button kind="quiet" size="small" icon="close" onClick={clear}>
            {t('clear')}
          </Button>
        </p>
      )}
    </section>
  );
}

/** The same as the menu of accounts in the header. */
export function AccountFilter() {
  const t = useMessages<typeof en>();
  const { accounts, selected } = useAccounts();
  if (accounts === null || accounts.length < 2 || selected === null) return null;
  return (
    <Select
      label={t('account')}
      value={String(selected.id)}
      choices={accounts.map(({ id, label }) => ({ value: String(id), label }))}
      onChoose={(id) => switchAccount(Number(id))}
    />
  );
}

/** @param value the id of a model; empty for all */
export function ModelFilter({
  value,
  onChoose,
}: {
  readonly value: string;
  readonly onChoose: (id: string | null) => void;
}) {
  const t = useMessages<typeof en>();
  const models = useModels().data ?? [];
  return (
    <FilterSelect
      label={t('model')}
      anyLabel={t('allModels')}
      value={value}
      choices={models.map((one) => ({ value: one.id, label: modelName(one) }))}
      onChoose={onChoose}
    />
  );
}

function IdFilter() {
  const t = useMessages<typeof en>();
  const { filter, findById } = useRequestFilter();
  return (
    <div class="filters-find">
      <Field
        label={t('requestId')}
        type="search"
        value={filter.requestId}
        spellcheck={false}
        autocomplete="off"
        onChange={(event) => findById(event.currentTarget.value.trim())}
      />
    </div>
  );
}
