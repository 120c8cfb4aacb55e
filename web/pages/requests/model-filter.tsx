import { useMessages } from '../../lib/language.tsx';
import { modelName, useModels } from '../../lib/models.ts';
import { Select } from '../../ui/field.tsx';
import type en from './messages.en.ts';

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
  // A model that is no longer offered may still be in the log.
  const isUnknown = value !== '' && !models.some(({ id }) => id === value);
  return (
    <Select
      label={t('model')}
      value={value}
      choices={[
        { value: '', label: t('allModels') },
        ...(isUnknown ? [{ value, label: value }] : []),
        ...models.map((one) => ({ value: one.id, label: modelName(one) })),
      ]}
      onChoose={(id) => onChoose(id === '' ? null : id)}
    />
  );
}
