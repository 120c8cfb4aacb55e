import { useMutation } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { useCommon } from '../lib/language.tsx';
import { Button } from './button.tsx';
import { Dialog, DialogActions } from './dialog.tsx';
import { ErrorText } from './states.tsx';

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
  const common = useCommon();
  const mutation = useMutation({ mutationFn: run, onSuccess: onClose });
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose} size="small">
      <div class="ask">
        {children}
        <ErrorText error={mutation.error} />
      </div>
      <DialogActions>
        <Button onClick={onClose}>{common('goBack')}</Button>
        <Button kind={kind} busy={mutation.isPending} onClick={() => mutation.mutate()}>
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
