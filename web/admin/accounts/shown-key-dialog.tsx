import { useMessages } from '../../lib/language.tsx';
import type { ComponentChildren } from 'preact';
import { useLeaveGuard } from '../../lib/leave-guard.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import type texts from './texts.en.ts';

/** Shows an API key, which the API does not tell again, so it is asked before the dialog or the page is left otherwise. */
export function ShownKeyDialog({
  title,
  apiKey,
  children,
  onClose,
}: {
  readonly title: string;
  /** Null if the key is not told again. */
  readonly apiKey: string | null;
  readonly children?: ComponentChildren;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof texts>();
  const question = apiKey === null ? null : t('keyLeave');
  useLeaveGuard(question);
  const leave = (): void => {
    if (question === null || globalThis.confirm(question)) onClose();
  };
  return (
    <Dialog title={title} isOpen isGuarded onClose={leave}>
      {children}
      {apiKey === null ? (
        <p>{t('keyNotTold')}</p>
      ) : (
        <>
          <p class="shown-key">
            <code>{apiKey}</code>
            <CopyButton text={apiKey} label={t('copyKey')} hasText />
          </p>
          <p class="shown-key-warning">{t('keyShownOnce')}</p>
        </>
      )}
      <DialogActions>
        <Button kind="primary" onClick={onClose}>
          {t('keyKept')}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
