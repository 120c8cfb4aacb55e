import { useMessages } from '../../lib/language.tsx';
import type { ComponentChildren } from 'preact';
import { SecretDialog, SecretText } from '../../ui/secret-dialog.tsx';
import type texts from './texts.en.ts';

/** Shows an API key, which the API does not tell again. */
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
  /** As that of a SecretDialog. */
  readonly onClose: (isLeaving: boolean) => void;
}) {
  const t = useMessages<typeof texts>();
  return (
    <SecretDialog title={title} secret={apiKey} loss={t('keyLeave')} onClose={onClose}>
      {(onTaken) => (
        <>
          {children}
          {apiKey === null ? (
            <p>{t('keyNotTold')}</p>
          ) : (
            <>
              <SecretText text={apiKey} label={t('copyKey')} onTaken={onTaken} />
              <p class="shown-key-warning">{t('keyShownOnce')}</p>
            </>
          )}
        </>
      )}
    </SecretDialog>
  );
}
