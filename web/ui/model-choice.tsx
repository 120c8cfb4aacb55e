import { useState } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';
import { Checkbox, Field } from './field.tsx';

/** Several models, chosen from many. Typing narrows the list. */
export function ModelChoice({
  label,
  offered,
  chosen,
  error,
  onChange,
}: {
  readonly label: string;
  readonly offered: readonly string[];
  /** Also models that are not offered any more. */
  readonly chosen: readonly string[];
  readonly error: string | null;
  readonly onChange: (models: readonly string[]) => void;
}) {
  const common = useCommon();
  const [wanted, setWanted] = useState('');
  const ids = [...offered, ...chosen.filter((id) => !offered.includes(id))];
  const shown = ids.filter((id) => id.toLowerCase().includes(wanted.trim().toLowerCase()));
  const toggle = (id: string, isChosen: boolean): void =>
    onChange(isChosen ? [...chosen, id] : chosen.filter((one) => one !== id));
  return (
    <div class="model-choice">
      <Field
        label={common('findModel')}
        type="search"
        value={wanted}
        onInput={(event) => setWanted(event.currentTarget.value)}
      />
      <div class="model-choice-list" role="group" aria-label={label} tabIndex={0}>
        {shown.map((id) => (
          <Checkbox
            key={id}
            label={id}
            checked={chosen.includes(id)}
            onToggle={(isChosen) => toggle(id, isChosen)}
          />
        ))}
        {shown.length === 0 && <p class="soft small">{common('nothingFound')}</p>}
      </div>
      <p class={error === null ? 'hint' : 'field-error'} aria-live="polite">
        {error ?? common('modelsChosen', { count: chosen.length })}
      </p>
    </div>
  );
}
