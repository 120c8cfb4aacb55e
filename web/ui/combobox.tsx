import * as combobox from '@zag-js/combobox';
import { normalizeProps, useMachine } from '@zag-js/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';
import { useUniqueId } from '../lib/unique-id.ts';
import type { Choice } from './field.tsx';
import { findChoices, type FoundChoice } from './find-choices.ts';
import { Icon } from './icon.tsx';

/** More are found by typing. */
const maxShown = 60;

export interface SearchedChoice extends Choice<string> {
  /** What else it is found by, such as the cities of a time zone. */
  readonly terms?: readonly string[];
}

/** A list of choices that typing narrows, such as models or time zones. */
export function Combobox({
  label,
  choices,
  value,
  onChoose,
  placeholder,
}: {
  readonly label: string;
  readonly choices: readonly SearchedChoice[];
  readonly value: string | null;
  readonly onChoose: (value: string) => void;
  readonly placeholder?: string;
}) {
  const common = useCommon();
  const [typed, setTyped] = useState('');
  const found = useMemo(() => findChoices(choices, typed).slice(0, maxShown), [typed, choices]);
  const collection = useMemo(() => collect(found, choices), [found, choices]);
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
  const chosenLabel = choices.find((choice) => choice.value === value)?.label ?? '';
  useEffect(() => {
    // The machine reads the label when a choice is made. In another language it is another one.
    if (!api.open && api.inputValue !== chosenLabel) api.setInputValue(chosenLabel);
  }, [chosenLabel]);
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
            found.map(({ choice, term }) => (
              <li key={choice.value} {...api.getItemProps({ item: choice })} class="menu-item">
                <span class="menu-text">
                  {choice.label}
                  {term !== null && <span class="soft small"> · {term}</span>}
                </span>
                {choice.value === value && <Icon name="check" size={16} />}
              </li>
            ))}
          {api.open && found.length === 0 && <li class="menu-empty">{common('nothingFound')}</li>}
        </ul>
      </div>
    </div>
  );
}

function collect(found: readonly FoundChoice[], choices: readonly SearchedChoice[]) {
  const collection = combobox.collection({
    items: found.map(({ choice }) => choice),
    itemToValue: (choice) => choice.value,
    itemToString: (choice) => choice.label,
  });
  // The label of the chosen one is needed also while it is not among those that are shown.
  collection.find = (value) => choices.find((choice) => choice.value === value) ?? null;
  return collection;
}
