import * as combobox from '@zag-js/combobox';
import { normalizeProps, useMachine } from '@zag-js/preact';
import { useMemo, useState } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';
import { useUniqueId } from '../lib/unique-id.ts';
import type { Choice } from './field.tsx';
import { Icon } from './icon.tsx';

/** More are found by typing. */
const maxShown = 60;

/** A list of choices that typing narrows, such as models or time zones. */
export function Combobox({
  label,
  choices,
  value,
  onChoose,
  placeholder,
}: {
  readonly label: string;
  readonly choices: readonly Choice<string>[];
  readonly value: string | null;
  readonly onChoose: (value: string) => void;
  readonly placeholder?: string;
}) {
  const common = useCommon();
  const [typed, setTyped] = useState('');
  const wanted = typed.trim().toLowerCase();
  const shown = choices.filter((choice) => choice.label.toLowerCase().includes(wanted)).slice(0, maxShown);
  const collection = useMemo(() => collect(shown, choices), [typed, choices]);
  const service = useMachine(combobox.machine, {
    id: useUniqueId(),
    collection,
    value: value === null ? [] : [value],
    ...(placeholder === undefined ? {} : { placeholder }),
    openOnClick: true,
    onOpenChange: ({ open }) => {
      if (!open) setTyped('');
    },
    onInputValueChange: ({ inputValue, reason }) => {
      if (reason === 'input-change') setTyped(inputValue);
    },
    onValueChange: ({ value: [chosen] }) => {
      if (chosen !== undefined) onChoose(chosen);
    },
  });
  const api = combobox.connect(service, normalizeProps);
  return (
    <div {...api.getRootProps()} class="field combobox">
      <label {...api.getLabelProps()}>{label}</label>
      <div {...api.getControlProps()} class="select">
        <input {...api.getInputProps()} class="input" />
        <Icon name="down" size={16} />
      </div>
      <div {...api.getPositionerProps()} class="menu-place">
        <ul {...api.getContentProps()} class="menu">
          {api.open &&
            shown.map((choice) => (
              <li key={choice.value} {...api.getItemProps({ item: choice })} class="menu-item">
                <span class="menu-text">{choice.label}</span>
                {choice.value === value && <Icon name="check" size={16} />}
              </li>
            ))}
          {api.open && shown.length === 0 && <li class="menu-empty">{common('nothingFound')}</li>}
        </ul>
      </div>
    </div>
  );
}

function collect(shown: readonly Choice<string>[], choices: readonly Choice<string>[]) {
  const collection = combobox.collection({
    items: [...shown],
    itemToValue: (choice) => choice.value,
    itemToString: (choice) => choice.label,
  });
  // The label of the chosen one is needed also while it is not among those that are shown.
  collection.find = (value) => choices.find((choice) => choice.value === value) ?? null;
  return collection;
}
