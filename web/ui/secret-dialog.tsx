import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useCommon } from '../lib/language.tsx';
import { useLeaveGuard } from '../lib/leave-guard.ts';
import { Ask } from './ask.tsx';
import { Button } from './button.tsx';
import { CopyButton } from './copy.tsx';
import { Dialog, DialogActions } from './dialog.tsx';

interface SecretGuard {
  /** Whether nothing would be lost. */
  readonly isSafe: boolean;
  /** Tells that it was copied or downloaded. */
  readonly take: () => void;
  /** Does what would lose it, if it is safe or somebody says so. */
  readonly leave: (run: () => void) => void;
  /** The question, to be rendered. */
  readonly question: ComponentChildren;
}

/**
 * Asks before something that is not shown again is left without a copy: by what is done through `leave`, by a link, by
 * "back" or by closing the tab. Whoever goes back a second time, or answers that it may be left, leaves.
 */
export function useSecret({
  secret,
  loss,
  onLeave,
}: {
  /** Null if nothing would be lost. A new one has to be taken again. */
  readonly secret: string | null;
  /** What would be lost. */
  readonly loss: string;
  /** Called before the page is left. */
  readonly onLeave: () => void;
}): SecretGuard {
  const common = useCommon();
  const [taken, setTaken] = useState<string | null>(null);
  /** What was asked about. */
  const [pending, setPending] = useState<{ readonly run: () => void } | null>(null);
  const isSafe = secret === null || taken === secret;
  const leave = (run: () => void): void => {
    if (isSafe || pending !== null) run();
    else setPending({ run });
  };
  const leavePage = (run: () => void): void =>
    leave(() => {
      onLeave();
      run();
    });
  useLeaveGuard(isSafe ? null : leavePage);
  const question = (
    <Ask
      title={common('secretTitle')}
      action={common('secretLeave')}
      kind="danger"
      isOpen={pending !== null}
      onClose={() => setPending(null)}
      run={async () => pending?.run()}
    >
      <p>{loss}</p>
    </Ask>
  );
  return { isSafe, take: () => setTaken(secret), leave, question };
}

/** A dialog that shows what is not shown again, and closes without a question only once that was taken. */
export function SecretDialog({
  title,
  secret,
  loss,
  onClose,
  actions,
  children,
}: {
  readonly title: string;
  /** Null if nothing would be lost. A new one has to be taken again. */
  readonly secret: string | null;
  /** What would be lost. */
  readonly loss: string;
  /** @param isLeaving whether the visitor leaves the page, too: then the caller must not go elsewhere */
  readonly onClose: (isLeaving: boolean) => void;
  /** Further buttons. What ends the dialog is done through `leave`. */
  readonly actions?: (leave: SecretGuard['leave']) => ComponentChildren;
  /** Gets what to call once the secret was taken. */
  readonly children: (onTaken: () => void) => ComponentChildren;
}) {
  const common = useCommon();
  const { isSafe, take, leave, question } = useSecret({ secret, loss, onLeave: () => onClose(true) });
  const close = (): void => leave(() => onClose(false));
  return (
    <Dialog title={title} isOpen isGuarded={!isSafe} onClose={close}>
      {children(take)}
      <DialogActions>
        {actions?.(leave)}
        <Button kind="primary" onClick={close}>
          {common('done')}
        </Button>
      </DialogActions>
      {question}
    </Dialog>
  );
}

/** A secret, and a button that copies it. */
export function SecretText({
  text,
  label,
  onTaken,
}: {
  readonly text: string;
  /** The name of the button. */
  readonly label: string;
  readonly onTaken: () => void;
}) {
  const onCopy = (): void => {
    // A part of it is of no use.
    if (String(getSelection()).includes(text)) onTaken();
  };
  return (
    <p class="shown-secret">
      <code onCopy={onCopy}>{text}</code>
      <CopyButton text={text} label={label} hasText onCopied={onTaken} />
    </p>
  );
}
