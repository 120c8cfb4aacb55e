import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { switchAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { describeError } from '../../lib/api-error.ts';
import { useCommon, useLanguage, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';
import { showToast } from '../../ui/toast.tsx';
import { noteAccount } from './account-changes.ts';
import type en from './messages.en.ts';

interface LinkProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

export function LinkDialog({ isOpen, onClose }: LinkProps) {
  const t = useMessages<typeof en>();
  return (
    <Dialog title={t('linkTitle')} isOpen={isOpen} onClose={onClose} size="small">
      <LinkForm onClose={onClose} />
    </Dialog>
  );
}

function LinkForm({ onClose }: Pick<LinkProps, 'onClose'>) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const language = useLanguage();
  const [apiKey, setApiKey] = useState('');
  const [label, setLabel] = useState(t('defaultLabel'));
  const link = useMutation({
    mutationFn: () =>
      call(api.POST('/v1/web/api-accounts/link', { body: { api_key: apiKey.trim(), label: label.trim() } })),
    onSuccess: (account) => {
      noteAccount(account);
      switchAccount(account.id);
      showToast(t('linked'));
      onClose();
    },
  });
  const isComplete = apiKey.trim() !== '' && label.trim() !== '';
  return (
    <form
      autoComplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        if (isComplete) link.mutate();
      }}
    >
      <p class="soft">{t('linkText')}</p>
      <Field
        label={t('linkKey')}
        class="keys-code"
        placeholder="mg-…"
        value={apiKey}
        spellcheck={false}
        autoComplete="off"
        autoFocus
        error={link.error === null ? null : describeError(link.error, language)}
        onInput={(event) => {
          setApiKey(event.currentTarget.value);
          link.reset();
        }}
      />
      <Field
        label={t('name')}
        value={label}
        maxLength={80}
        onInput={(event) => setLabel(event.currentTarget.value)}
      />
      <DialogActions>
        <Button onClick={onClose}>{common('cancel')}</Button>
        <Button kind="primary" type="submit" busy={link.isPending} disabled={!isComplete}>
          {t('link')}
        </Button>
      </DialogActions>
    </form>
  );
}
