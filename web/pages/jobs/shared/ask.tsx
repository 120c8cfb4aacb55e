import { useMutation } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { useMessages } from '../../../lib/language.tsx';
import { Button } from '../../../ui/button.tsx';
import { Dialog, DialogActions } from '../../../ui/dialog.tsx';
import { ErrorText } from '../../../ui/states.tsx';
import type texts from './texts.en.ts';

/** Says what an action will do, and asks whether to do it. */
export function Ask({
  title,
  action,
  kind,
  isOpen,
  onClose,
  run,
  children,
}: {
  readonly title: string;
  /** The name of the button that does it. */
  readonly action: string;
  readonly kind: 'primary' | 'danger';
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** The dialog closes once it is done, and stays open with the error otherwise. */
  readonly run: () => Promise<unknown>;
  readonly children: ComponentChildren;
}) {
  const t = useMessages<typeof texts>();
  const mutation = useMutation({ mutationFn: run, onSuccess: onClose });
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose} size="small">
      <div class="work-ask">
        {children}
        <ErrorText error={mutation.error} />
      </div>
      <DialogActions>
        <Button onClick={onClose}>{t('keep')}</Button>
        <Button kind={kind} busy={mutation.isPending} onClick={() => mutation.mutate()}>
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
