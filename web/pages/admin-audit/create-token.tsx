import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { adminScopes, type AdminScope } from '../../../shared/contract/admin-terms.ts';
import { adminApi, call, consoleQueries } from '../../admin/api.ts';
import { useConsole } from '../../admin/texts.ts';
import { findFieldError } from '../../lib/api-error.ts';
import { useCommon, useLanguage, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Field, Select } from '../../ui/field.tsx';
import { SecretDialog, SecretText } from '../../ui/secret-dialog.tsx';
import { ErrorText } from '../../ui/states.tsx';
import type en from './messages.en.ts';

/** Creates a token, which is shown only once. */
export function CreateToken({ onClose }: { readonly onClose: () => void }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const console = useConsole();
  const language = useLanguage();
  const [name, setName] = useState('');
  const [scope, setScope] = useState<AdminScope>('read');
  const [isMissing, setIsMissing] = useState(false);
  const create = useMutation({
    mutationFn: () => call(adminApi.POST('/v1/admin/tokens', { body: { name: name.trim(), scope } })),
    onSuccess: () => consoleQueries.invalidateQueries(),
  });
  const { data: created, error, isPending } = create;
  const nameError = findFieldError(error, 'name', language);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const lacksName = name.trim() === '';
    setIsMissing(lacksName);
    if (!lacksName && !isPending) create.mutate();
  };
  if (created !== undefined)
    return (
      <SecretDialog
        title={t('createdTitle', { name: created.name })}
        secret={created.token}
        loss={t('notCopied')}
        onClose={onClose}
      >
        {(onTaken) => (
          <>
            <p>{t('createdText')}</p>
            <SecretText text={created.token} label={t('copyToken')} onTaken={onTaken} />
          </>
        )}
      </SecretDialog>
    );
  return (
    <Dialog title={t('createToken')} isOpen isGuarded={name !== ''} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <Field
          label={t('name')}
          hint={t('nameHint')}
          maxLength={63}
          hasFocus
          spellcheck={false}
          autocomplete="off"
          value={name}
          error={isMissing ? t('nameMissing') : nameError}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <Select
          label={t('scope')}
          value={scope}
          choices={adminScopes.map((value) => ({ value, label: console(`scope_${value}`) }))}
          onChoose={setScope}
        />
        <p class="soft small">{console('recorded')}</p>
        <ErrorText error={nameError === null ? error : null} />
        <DialogActions>
          <Button onClick={onClose}>{common('cancel')}</Button>
          <Button kind="primary" type="submit" busy={isPending}>
            {t('create')}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
