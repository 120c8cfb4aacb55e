import type { FilterChanges } from '../../lib/address-filters.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { capabilities, listCapabilities, modelTypes, type Model } from '../../lib/models.ts';
import { Field, Select } from '../../ui/field.tsx';
import { orders, readFilters } from './filter-models.ts';
import type en from './messages.en.ts';

export const noFilters: FilterChanges = { q: null, type: null, can: null };

export function ModelFilters({
  models,
  filters,
  onChange,
}: {
  readonly models: readonly Model[];
  readonly filters: URLSearchParams;
  readonly onChange: (changes: FilterChanges) => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const { text, type, can, order } = readFilters(filters);
  const types = modelTypes.filter((name) => models.some((model) => model.type === name));
  const offered = capabilities.filter((name) =>
    models.some((model) => listCapabilities(model).includes(name)),
  );
  return (
    <search class="models-filters">
      <Field
        label={t('search')}
        type="search"
        placeholder={t('searchHint')}
        autoComplete="off"
        maxLength={100}
        value={text}
        onInput={({ currentTarget: { value } }) => onChange({ q: value === '' ? null : value })}
      />
      <Select
        label={t('type')}
        value={type ?? 'all'}
        choices={[
          { value: 'all', label: t('allTypes') },
          ...types.map((value) => ({ value, label: common(`modelType_${value}`) })),
        ]}
        onChoose={(value) => onChange({ type: value === 'all' ? null : value })}
      />
      <Select
        label={t('order')}
        value={order}
        choices={orders.map((value) => ({ value, label: t(`order_${value}`) }))}
        onChoose={(value) => onChange({ sort: value === 'operator' ? null : value })}
      />
      {offered.length > 0 && (
        <div class="models-chips" role="group" aria-label={t('capabilities')}>
          {offered.map((name) => {
            const isOn = can.includes(name);
            const next = isOn ? can.filter((other) => other !== name) : [...can, name];
            return (
              <button
                key={name}
                type="button"
                class="models-chip"
                aria-pressed={isOn}
                onClick={() => onChange({ can: next.length === 0 ? null : next.join(',') })}
              >
                {t(`can_${name}`)}
              </button>
            );
          })}
        </div>
      )}
    </search>
  );
}
