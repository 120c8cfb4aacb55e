import type {
  ComponentChildren,
  InputHTMLAttributes,
  SelectHTMLAttributes,
  TextareaHTMLAttributes,
} from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useUniqueId } from '../lib/unique-id.ts';
import { Icon } from './icon.tsx';

interface FieldParts {
  readonly label: string;
  /** Below the label; says what is expected. */
  readonly hint?: ComponentChildren;
  /** Below the control, announced when it appears. */
  readonly error?: string | null;
}

interface ControlProps {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': true | undefined;
}

/** A label, a control and what is wrong with it. The line of the error has its height when it is empty, too. */
function Labelled({
  label,
  hint,
  error = null,
  children,
}: FieldParts & { readonly children: (props: ControlProps) => ComponentChildren }) {
  const id = useUniqueId();
  const described = [hint === undefined ? '' : `${id}-hint`, error === null ? '' : `${id}-error`];
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {children({
        id,
        'aria-describedby': described.join(' ').trim() || undefined,
        'aria-invalid': error === null ? undefined : true,
      })}
      <p class="field-error" id={`${id}-error`} aria-live="polite">
        {error}
      </p>
    </div>
  );
}

/** @param hasFocus whether to move the focus here when the field appears */
export function Field({
  label,
  hint,
  error,
  hasFocus = false,
  ...input
}: FieldParts &
  Omit<InputHTMLAttributes, 'label' | 'class'> & { readonly class?: string; readonly hasFocus?: boolean }) {
  const element = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (hasFocus) element.current?.focus();
  }, []);
  return (
    <Labelled label={label} hint={hint} error={error ?? null}>
      {(control) => (
        <input type="text" {...input} {...control} ref={element} class={`input ${input.class ?? ''}`} />
      )}
    </Labelled>
  );
}

export function TextArea({
  label,
  hint,
  error,
  ...input
}: FieldParts & Omit<TextareaHTMLAttributes, 'label' | 'class'> & { readonly class?: string }) {
  return (
    <Labelled label={label} hint={hint} error={error ?? null}>
      {(control) => <textarea rows={4} {...input} {...control} class={`input ${input.class ?? ''}`} />}
    </Labelled>
  );
}

export interface Choice<Value extends string> {
  readonly value: Value;
  readonly label: string;
}

/** The browser's own list: it works with every keyboard, phone and screen reader. For a long list, use Combobox. */
export function Select<Value extends string>({
  label,
  hint,
  error,
  choices,
  value,
  onChoose,
  ...select
}: FieldParts &
  Omit<SelectHTMLAttributes, 'label' | 'value'> & {
    readonly choices: readonly Choice<Value>[];
    readonly value: Value;
    readonly onChoose: (value: Value) => void;
  }) {
  return (
    <Labelled label={label} hint={hint} error={error ?? null}>
      {(control) => (
        <span class="select">
          <select
            {...select}
            {...control}
            class="input"
            value={value}
            onChange={(event) => onChoose(event.currentTarget.value as Value)}
          >
            {choices.map((choice) => (
              <option key={choice.value} value={choice.value}>
                {choice.label}
              </option>
            ))}
          </select>
          <Icon name="down" size={16} />
        </span>
      )}
    </Labelled>
  );
}

export function Checkbox({
  label,
  hint,
  onToggle,
  ...input
}: {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly onToggle: (checked: boolean) => void;
} & Omit<InputHTMLAttributes, 'label' | 'onToggle'>) {
  const id = useUniqueId();
  return (
    <div class="checkbox">
      <input
        {...input}
        id={id}
        type="checkbox"
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        onChange={(event) => onToggle(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}
