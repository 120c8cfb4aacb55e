import { useMessages } from '../../../lib/language.tsx';
import type { Model } from '../../../lib/models.ts';
import { Button } from '../../../ui/button.tsx';
import { Field, Select, TextArea } from '../../../ui/field.tsx';
import type en from '../messages.en.ts';
import { defaultOptions, type ChatOptions, type ChatState } from './chat-state.ts';

type NumberOption = 'temperature' | 'top_p' | 'max_tokens' | 'frequency_penalty' | 'presence_penalty';

/** Their bounds are those of the API. */
const numberOptions: readonly { name: NumberOption; min: number; max?: number; step: number }[] = [
  { name: 'temperature', min: 0, max: 2, step: 0.1 },
  { name: 'max_tokens', min: 1, step: 1 },
  { name: 'top_p', min: 0, max: 1, step: 0.05 },
  { name: 'frequency_penalty', min: -2, max: 2, step: 0.1 },
  { name: 'presence_penalty', min: -2, max: 2, step: 0.1 },
];

/** The system prompt and the options that the model has. */
export function ChatSettings({
  state: { system, options },
  model,
  onChange,
}: {
  readonly state: ChatState;
  readonly model: Model;
  readonly onChange: (changes: Partial<ChatState>) => void;
}) {
  const t = useMessages<typeof en>();
  const setOption = (changes: Partial<ChatOptions>): void =>
    onChange({ options: { ...options, ...changes } });
  const isChanged = Object.values(options).some((value) => value !== '');
  return (
    <div class="playground-fields">
      <TextArea
        label={t('system')}
        rows={4}
        placeholder={t('systemPlaceholder')}
        value={system}
        onInput={({ currentTarget: { value } }) => onChange({ system: value })}
      />
      <SpecSelect
        label={t('effort')}
        spec={model.reasoning_effort}
        value={options.reasoning_effort}
        onChoose={(value) => setOption({ reasoning_effort: value })}
      />
      <SpecSelect
        label={t('imageQuality')}
        spec={model.image_quality}
        value={options.image_quality}
        onChoose={(value) => setOption({ image_quality: value })}
      />
      {model.web_search === true && (
        <Select
          label={t('webSearch')}
          value={options.web_search}
          choices={[
            { value: '', label: t('searchOff') },
            { value: 'links', label: t('searchLinks') },
            { value: 'no-links', label: t('searchNoLinks') },
          ]}
          onChoose={(value) => setOption({ web_search: value })}
        />
      )}
      <div class="playground-numbers">
        {numberOptions.map(({ name, min, max, step }) => (
          <Field
            key={name}
            label={t(name)}
            type="number"
            inputMode="decimal"
            min={min}
            max={max}
            step={step}
            placeholder={t('byDefaultShort')}
            value={options[name]}
            error={findFault(options[name], min, max) ? t('outside', { min, max: max ?? '…' }) : null}
            onInput={({ currentTarget: { value } }) => setOption({ [name]: value })}
          />
        ))}
      </div>
      <div>
        <Button size="small" disabled={!isChanged} onClick={() => onChange({ options: defaultOptions })}>
          {t('reset')}
        </Button>
      </div>
    </div>
  );
}

/** Whether an option is outside of its bounds: the request would be refused. */
export const hasFaults = (options: ChatOptions): boolean =>
  numberOptions.some(({ name, min, max }) => findFault(options[name], min, max));

const findFault = (text: string, min: number, max = Infinity): boolean =>
  text !== '' && (Number(text) < min || Number(text) > max);

/** A choice of an option whose values are those of the model. Nothing if the model does not have it. */
export function SpecSelect({
  label,
  spec,
  value,
  onChoose,
}: {
  readonly label: string;
  readonly spec: Model['reasoning_effort'];
  readonly value: string;
  readonly onChoose: (value: string) => void;
}) {
  const t = useMessages<typeof en>();
  const choices = spec?.choices ?? [];
  if (choices.length === 0) return null;
  const standard = spec?.default ?? null;
  return (
    <Select
      label={label}
      value={choices.includes(value) ? value : ''}
      choices={[
        { value: '', label: standard === null ? t('byDefault') : t('defaultIs', { choice: standard }) },
        ...choices.map((choice) => ({ value: choice, label: choice })),
      ]}
      onChoose={onChoose}
    />
  );
}
