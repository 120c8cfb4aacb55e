import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import {
  emptyDraft,
  writeNewAccount,
  type AccountDraft,
  type Setting,
} from '../../admin/accounts/account-draft.ts';
import {
  AddressesField,
  BudgetFields,
  ExpiryField,
  LowBalanceField,
  ModelsField,
  NoteField,
  OwnerFields,
  RateFields,
  SettingField,
  type FieldsProps,
} from '../../admin/accounts/setting-fields.tsx';
import { useSettingsForm } from '../../admin/accounts/settings-form.ts';
import { ShownKeyDialog } from '../../admin/accounts/shown-key-dialog.tsx';
import { adminApi, call, type Schema } from '../../admin/api.ts';
import { shortId } from '../../admin/links.tsx';
import { ApiError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { createKey } from '../../lib/create-key.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { ErrorText } from '../../ui/states.tsx';
import type en from './messages.en.ts';

const common: readonly Setting[] = ['name', 'email', 'balance', 'free_requests', 'note'];
const rare: readonly Setting[] = [
  'requests_per_minute',
  'tokens_per_minute',
  'budget',
  'low_balance',
  'expires_at',
  'addresses',
  'user_type',
  'models',
];
const settings = [...common, ...rare];

type Created = Schema<'CreatedAccount'>;

/** Creates an account, shows its key, and then the account. */
export function CreateAccount({ onClose }: { readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const [created, setCreated] = useState<Created | null>(null);
  const [isKept, setIsKept] = useState(false);
  const [, navigate] = useLocation();
  useEffect(() => {
    // Once the key's dialog is gone, which asks before the page is left.
    if (isKept && created !== null) navigate(`/admin/accounts/${encodeURIComponent(created.id)}`);
  }, [isKept, created]);
  if (created === null) return <CreateDialog onClose={onClose} onCreated={setCreated} />;
  if (isKept) return null;
  const { name, email, id, api_key: apiKey } = created;
  return (
    <ShownKeyDialog
      title={t('createdTitle')}
      apiKey={apiKey}
      onClose={(isLeaving) => (isLeaving ? onClose() : setIsKept(true))}
    >
      <p>{t.nodes('createdText', { name: <strong>{name ?? email ?? shortId(id)}</strong> })}</p>
    </ShownKeyDialog>
  );
}

function CreateDialog({
  onClose,
  onCreated,
}: {
  readonly onClose: () => void;
  readonly onCreated: (created: Created) => void;
}) {
  const t = useMessages<typeof en>();
  const commonTexts = useCommon();
  const { timeZone } = useFormat();
  // Of this dialog: repeated calls, such as after a lost response, create one account.
  const [key] = useState(createKey);
  const create = (draft: AccountDraft): Promise<Created> =>
    call(
      adminApi.POST('/v1/admin/accounts', {
        params: { header: { 'Idempotency-Key': key } },
        body: writeNewAccount(draft, settings, timeZone),
      }),
    );
  const { fields, form, work, isChanged } = useSettingsForm({
    initial: emptyDraft,
    settings,
    isNew: true,
    send: create,
    onDone: onCreated,
  });
  const isConflict = work.error instanceof ApiError && work.error.code === 'idempotency_conflict';
  const hasRareProblem = rare.some((setting) => fields.errors.of(setting) !== null);
  return (
    <Dialog title={t('createTitle')} isOpen isGuarded={isChanged} onClose={onClose}>
      <form class="settings-form" {...form}>
        <OwnerFields {...fields} />
        <div class="settings-row">
          <SettingField {...fields} setting="balance" inputMode="decimal" placeholder="0" />
          <SettingField {...fields} setting="free_requests" inputMode="numeric" placeholder="0" />
        </div>
        <NoteField {...fields} />
        <RareFields {...fields} mustOpen={hasRareProblem} />
        {isConflict ? (
          <p class="error-text" role="alert">
            {t('createdAlready')}
          </p>
        ) : (
          <ErrorText error={fields.errors.rest} />
        )}
        <DialogActions>
          <Button onClick={onClose}>{commonTexts('cancel')}</Button>
          <Button kind="primary" type="submit" busy={work.isPending}>
            {t('create')}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

function RareFields({
  mustOpen,
  ...fields
}: FieldsProps & {
  /** Whether it has a field to be mended. */
  readonly mustOpen: boolean;
}) {
  const t = useMessages<typeof en>();
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details
      class="settings-more"
      open={isOpen || mustOpen}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
    >
      <summary>{t('moreSettings')}</summary>
      <div class="settings-form">
        <RateFields {...fields} placeholder={t('byDefault')} />
        <BudgetFields {...fields} />
        <LowBalanceField {...fields} />
        <ExpiryField {...fields} />
        <AddressesField {...fields} />
        <ModelsField {...fields} />
        <SettingField {...fields} setting="user_type" maxLength={64} placeholder="default" />
      </div>
    </details>
  );
}
