import { useState } from 'preact/hooks';
import {
  beginDraft,
  writeChange,
  type AccountDraft,
  type Setting,
} from '../../admin/accounts/account-draft.ts';
import {
  AddressesField,
  BudgetFields,
  ExpiryField,
  JobFields,
  LowBalanceField,
  ModelsField,
  NoteField,
  OwnerFields,
  RateFields,
  type FieldsProps,
} from '../../admin/accounts/setting-fields.tsx';
import { useSettingsForm } from '../../admin/accounts/settings-form.ts';
import { adminApi, call } from '../../admin/api.ts';
import { findReasonProblem, ReasonField, toGivenReason } from '../../admin/reason-field.tsx';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { ErrorText } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { nameOf, type Account } from './account.ts';
import type { SettingsGroup } from './dialog-names.ts';
import type en from './messages.en.ts';

const settingsOf = {
  owner: ['name', 'email', 'note'],
  limits: ['requests_per_minute', 'tokens_per_minute', 'max_queued_jobs', 'weight'],
  money: ['budget', 'low_balance'],
  access: ['models', 'addresses', 'expires_at'],
} as const satisfies Readonly<Record<SettingsGroup, readonly Setting[]>>;

/** Changes the settings of a group. Only those that were changed here are sent. */
export function SettingsDialog({
  account,
  group,
  onClose,
}: {
  readonly account: Account;
  readonly group: SettingsGroup;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const { timeZone } = useFormat();
  const [initial] = useState(() => beginDraft(account, timeZone));
  const [reason, setReason] = useState('');
  const problem = findReasonProblem(reason);
  const settings = settingsOf[group];
  const save = async (draft: AccountDraft): Promise<void> => {
    const body = writeChange(initial, draft, settings, timeZone);
    const params = { path: { account_id: account.id }, query: toGivenReason(reason) };
    if (Object.keys(body).length > 0)
      await call(adminApi.PATCH('/v1/admin/accounts/{account_id}', { params, body }));
  };
  const { fields, form, work, isChanged } = useSettingsForm({
    initial,
    settings,
    send: save,
    onDone: () => {
      showToast(t('saved'));
      onClose();
    },
  });
  const submit = (event: SubmitEvent): void => {
    if (problem === null) form.onSubmit(event);
    else event.preventDefault();
  };
  return (
    <Dialog
      title={`${t(`group_${group}`)}: ${nameOf(account)}`}
      isOpen
      isGuarded={isChanged || reason !== ''}
      onClose={onClose}
    >
      <form class="settings-form" {...form} onSubmit={submit}>
        <GroupFields group={group} {...fields} />
        <ReasonField value={reason} problem={problem} onChange={setReason} />
        <ErrorText error={fields.errors.rest} />
        <DialogActions>
          <Button onClick={onClose}>{common('cancel')}</Button>
          <Button kind="primary" type="submit" busy={work.isPending}>
            {common('save')}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

function GroupFields({ group, ...fields }: FieldsProps & { readonly group: SettingsGroup }) {
  switch (group) {
    case 'owner':
      return (
        <>
          <OwnerFields {...fields} />
          <NoteField {...fields} />
        </>
      );
    case 'limits':
      return (
        <>
          <RateFields {...fields} hasFocus />
          <JobFields {...fields} />
        </>
      );
    case 'money':
      return (
        <>
          <BudgetFields {...fields} hasFocus />
          <LowBalanceField {...fields} />
        </>
      );
    case 'access':
      return (
        <>
          <ModelsField {...fields} />
          <AddressesField {...fields} />
          <ExpiryField {...fields} />
        </>
      );
  }
}
