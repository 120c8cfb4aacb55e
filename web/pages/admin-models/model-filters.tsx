import { SearchField } from '../../admin/search-field.tsx';
import type { FilterChanges } from '../../lib/address-filters.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { modelTypes } from '../../lib/models.ts';
import { Select } from '../../ui/field.tsx';
import type en from './messages.en.ts';
import { modelStates, type ModelFilter, type ModelView } from './routes.ts';

export const noFilters: FilterChanges = { q: null, type: null, state: null, upstream: null };

const states = ['troubled', ...modelStates] as const;

export const readFilters = (filters: URLSearchParams): ModelFilter => ({
  text: filters.get('q') ?? '',
  type: modelTypes.find((type) => type === filters.get('type')) ?? null,
  state: states.find((state) => state === filters.get('state')) ?? null,
  upstream: filters.get('upstream'),
});

/** They are in the address, so that they can be kept and sent. */
export function ModelFilters({
  models,
  filters,
  onChange,
}: {
  readonly models: readonly ModelView[];
  readonly filters: URLSearchParams;
  readonly onChange: (changes: FilterChanges) => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const { text, type, state, upstream } = readFilters(filters);
  const upstreams = [...new Set(models.flatMap(({ routes }) => routes.map((route) => route.upstream)))];
  const set = (name: string) => (value: string) => onChange({ [name]: value === '' ? null : value });
  return (
    <search class="admin-filters">
      <SearchField
        label={t('search')}
        placeholder={t('searchHint')}
        maxLength={100}
        value={text}
        isLive
        onText={set('q')}
      />
      <Select
        label={t('type')}
        value={type ?? ''}
        choices={[
          { value: '', label: t('anyType') },
          ...modelTypes.map((value) => ({ value, label: common(`modelType_${value}`) })),
        ]}
        onChoose={set('type')}
      />
      <Select
        label={t('state')}
        value={state ?? ''}
        choices={[
          { value: '', label: t('anyState') },
          ...states.map((value) => ({ value, label: t(`state_${value}`) })),
        ]}
        onChoose={set('state')}
      />
      <UpstreamFilter
        names={upstreams}
        value={upstream}
        onChoose={(value) => onChange({ upstream: value })}
      />
    </search>
  );
}

export function UpstreamFilter({
  names,
  value,
  onChoose,
}: {
  readonly names: readonly string[];
  /** Null for all. */
  readonly value: string | null;
  readonly onChoose: (name: string | null) => void;
}) {
  const t = useMessages<typeof en>();
  // The address may name one that is gone.
  const known = value === null || names.includes(value) ? names : [...names, value];
  return (
    <Select
      label={t('upstream')}
      value={value ?? ''}
      choices={[
        { value: '', label: t('anyUpstream') },
        ...known.map((name) => ({ value: name, label: name })),
      ]}
      onChoose={(name) => onChoose(name === '' ? null : name)}
    />
  );
}
