import { Select, type Choice } from './field.tsx';

/** A filter by one of some things, such as models, or by none. */
export function FilterSelect({
  label,
  anyLabel,
  choices,
  value,
  onChoose,
}: {
  readonly label: string;
  /** For no filter. */
  readonly anyLabel: string;
  readonly choices: readonly Choice<string>[];
  /** Empty for none. One that is no longer offered is kept. */
  readonly value: string;
  readonly onChoose: (value: string | null) => void;
}) {
  const isUnknown = value !== '' && !choices.some((choice) => choice.value === value);
  return (
    <Select
      label={label}
      value={value}
      choices={[{ value: '', label: anyLabel }, ...(isUnknown ? [{ value, label: value }] : []), ...choices]}
      onChoose={(chosen) => onChoose(chosen === '' ? null : chosen)}
    />
  );
}
