import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { describeError } from '../../lib/api-error.ts';
import { useCommon, useLanguage, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';
import { changeAccount } from './account-changes.ts';
import type en from './messages.en.ts';

const maxLabelLength = 80;

interface RenameProps {
  readonly account: ApiAccount;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function RenameDialog(props: RenameProps) {
  const t = useMessages<typeof en>();
  return (
    <Dialog title={t('renameTitle')} isOpen={props.isOpen} onClose={props.onClose} size="small">
      <RenameForm {...props} />
    </Dialog>
  );
}

function RenameForm({ account, onClose }: RenameProps) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const language = useLanguage();
  const [label, setLabel] = useState(account.label);
  const rename = useMutation({
    mutationFn: () => changeAccount(account.id, { label: label.trim() }),
    onSuccess: onClose,
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (label.trim() !== '') rename.mutate();
      }}
    >
      <Field
        label={t('name')}
        value={label}
        maxLength={maxLabelLength}
        autoFocus
        error={rename.error === null ? null : describeError(rename.error, language)}
        onInput={(event) => setLabel(event.currentTarget.value)}
      />
      <DialogActions>
        <Button onClick={onClose}>{common('cancel')}</Button>
        <Button kind="primary" type="submit" busy={rename.isPending} disabled={label.trim() === ''}>
          {common('save')}
        </Button>
      </DialogActions>
    </form>
  );
}
