import { useMessages } from '../../lib/language.tsx';
import { useQuery } from '@tanstack/preact-query';
import { useFormat } from '../../lib/format.ts';
import { Field, Select, TextArea } from '../../ui/field.tsx';
import { ModelChoice } from '../../ui/model-choice.tsx';
import { QueryView } from '../../ui/states.tsx';
import { adminApi, call } from '../api.ts';
import type texts from './texts.en.ts';
import { periods, type AccountDraft, type Setting } from './account-draft.ts';
import type { FieldErrors } from './field-errors.ts';

export interface FieldsProps {
  readonly draft: AccountDraft;
  readonly errors: FieldErrors<Setting>;
  readonly change: (change: Partial<AccountDraft>) => void;
}

type TextSetting = Exclude<Setting, 'models' | 'addresses'>;

/** A field of one line. */
export function SettingField({
  setting,
  draft,
  errors,
  change,
  ...input
}: FieldsProps & {
  readonly setting: TextSetting;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly hasFocus?: boolean;
  readonly inputMode?: 'decimal' | 'numeric' | 'email';
  readonly type?: 'datetime-local';
  readonly maxLength?: number;
}) {
  const t = useMessages<typeof texts>();
  return (
    <Field
      {...input}
      label={t(`setting_${setting}`)}
      autoComplete="off"
      value={draft[setting]}
      error={errors.of(setting)}
      onInput={(event) => change({ [setting]: event.currentTarget.value })}
    />
  );
}

export const OwnerFields = (props: FieldsProps) => (
  <div class="settings-row">
    <SettingField {...props} setting="name" maxLength={200} hasFocus />
    <SettingField {...props} setting="email" inputMode="email" maxLength={254} />
  </div>
);

export function NoteField(props: FieldsProps) {
  const t = useMessages<typeof texts>();
  return <SettingField {...props} setting="note" hint={t('noteHint')} maxLength={2_000} />;
}

interface FirstFieldProps extends FieldsProps {
  /** Whether the first field gets the focus when it appears. */
  readonly hasFocus?: boolean;
}

export function RateFields({
  placeholder = '',
  hasFocus = false,
  ...fields
}: FirstFieldProps & { readonly placeholder?: string }) {
  const t = useMessages<typeof texts>();
  return (
    <div class="settings-row">
      <SettingField
        {...fields}
        setting="requests_per_minute"
        hasFocus={hasFocus}
        inputMode="numeric"
        placeholder={placeholder}
      />
      <SettingField
        {...fields}
        setting="tokens_per_minute"
        inputMode="numeric"
        placeholder={t('unlimited')}
      />
    </div>
  );
}

export function JobFields(props: FieldsProps) {
  const t = useMessages<typeof texts>();
  return (
    <div class="settings-row">
      <SettingField {...props} setting="max_queued_jobs" inputMode="numeric" hint={t('queuedJobsHint')} />
      <SettingField {...props} setting="weight" inputMode="numeric" hint={t('weightHint')} />
    </div>
  );
}

export function BudgetFields({ hasFocus = false, ...props }: FirstFieldProps) {
  const t = useMessages<typeof texts>();
  return (
    <div>
      <div class="settings-row">
        <SettingField
          {...props}
          setting="budget"
          hasFocus={hasFocus}
          inputMode="decimal"
          placeholder={t('unlimited')}
        />
        <Select
          label={t('period')}
          value={props.draft.period}
          choices={periods.map((value) => ({ value, label: t(`period_${value}`) }))}
          onChoose={(period) => props.change({ period })}
        />
      </div>
      <p class="hint">{t('budgetHint')}</p>
    </div>
  );
}

export function LowBalanceField(props: FieldsProps) {
  const t = useMessages<typeof texts>();
  return (
    <SettingField
      {...props}
      setting="low_balance"
      inputMode="decimal"
      hint={t('lowBalanceHint')}
      placeholder={t('noMail')}
    />
  );
}

export function AddressesField({ draft, errors, change }: FieldsProps) {
  const t = useMessages<typeof texts>();
  return (
    <TextArea
      label={t('setting_addresses')}
      hint={t('addressesHint')}
      rows={3}
      spellcheck={false}
      maxLength={8_000}
      value={draft.addresses}
      error={errors.of('addresses')}
      onInput={(event) => change({ addresses: event.currentTarget.value })}
    />
  );
}

export function ExpiryField(props: FieldsProps) {
  const t = useMessages<typeof texts>();
  const { timeZone } = useFormat();
  return (
    <SettingField
      {...props}
      setting="expires_at"
      type="datetime-local"
      hint={t('expiryHint', { zone: timeZone })}
    />
  );
}

/** All models of the catalog, also those that are not served now. */
export function ModelsField({ draft, errors, change }: FieldsProps) {
  const t = useMessages<typeof texts>();
  const query = useQuery({
    queryKey: ['all-model-ids'],
    queryFn: ({ signal }) =>
      call(adminApi.GET('/v1/models', { params: { query: { active: 'all' } }, signal })),
  });
  return (
    <fieldset class="settings-models">
      <legend>{t('setting_models')}</legend>
      <p class="hint">{t('modelsHint')}</p>
      <QueryView query={query}>
        {({ data }) => (
          <ModelChoice
            label={t('setting_models')}
            offered={(data ?? []).map(({ id }) => id)}
            chosen={draft.models}
            error={errors.of('models')}
            onChange={(models) => change({ models })}
          />
        )}
      </QueryView>
    </fieldset>
  );
}
