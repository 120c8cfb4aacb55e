import { useMessages } from '../../lib/language.tsx';
import { modelName, useModels } from '../../lib/models.ts';
import { Button } from '../../ui/button.tsx';
import { DateRange } from '../../ui/date-range.tsx';
import { Field, Select } from '../../ui/field.tsx';
import type en from './messages.en.ts';
import { outcomes, toLocal, toUtc, useRequestFilter } from './request-filter.ts';

/** What is looked for. It is in the address, so that it can be kept and sent. */
export function Filters() {
  const t = useMessages<typeof en>();
  const models = useModels().data ?? [];
  const { filter, setFilter } = useRequestFilter();
  const { model = '', outcome = '', since, until, request_id: requestId = '' } = filter;
  // A model that is no longer offered may still be in the log.
  const isUnknown = model !== '' && !models.some(({ id }) => id === model);
  return (
    <section class="card requests-filters" aria-label={t('filters')}>
      <Select
        label={t('model')}
        value={model}
        choices={[
          { value: '', label: t('allModels') },
          ...(isUnknown ? [{ value: model, label: model }] : []),
          ...models.map((one) => ({ value: one.id, label: modelName(one) })),
        ]}
        onChoose={(value) => setFilter({ model: value === '' ? null : value })}
      />
      <Select
        label={t('outcome')}
        value={outcome}
        choices={[
          { value: '', label: t('allOutcomes') },
          ...outcomes.map((value) => ({ value, label: t(`outcome_${value}`) })),
        ]}
        onChoose={(value) => setFilter({ outcome: value === '' ? null : value })}
      />
      <DateRange
        value={{ since: toLocal(since), until: toLocal(until) }}
        onChange={(range) => setFilter({ since: toUtc(range.since), until: toUtc(range.until) })}
      />
      <Field
        label={t('requestId')}
        value={requestId}
        spellcheck={false}
        autocomplete="off"
        onChange={(event) => {
          const id = event.currentTarget.value.trim();
          setFilter({ request_id: id === '' ? null : id });
        }}
      />
      {Object.keys(filter).length > 0 && (
        <Button
          kind="quiet"
          onClick={() =>
            setFilter({ model: null, outcome: null, since: null, until: null, request_id: null })
          }
        >
          {t('clear')}
        </Button>
      )}
    </section>
  );
}
