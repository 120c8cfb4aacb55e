import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { components } from '../generated/api.d.ts';
import { useCommon } from '../lib/language.tsx';
import { useSession } from '../lib/session.ts';
import { Button, type ButtonKind } from './button.tsx';
import { CodeField, isWholeCode } from './code-field.tsx';
import { Dialog, DialogActions } from './dialog.tsx';
import { ErrorText } from './states.tsx';

type CodeRequested = components['schemas']['EmailCodeRequested'];
export interface CodeConfirmation {
  readonly challenge_id: string;
  readonly code: string;
}

export interface ConfirmByCodeProps<Result> {
  readonly title: string;
  /** What will happen, before a code is mailed. */
  readonly children: ComponentChildren;
  /** The name of the action, on its button. */
  readonly action: string;
  readonly kind?: ButtonKind;
  /** Mails a code. */
  readonly requestCode: (email: string) => Promise<CodeRequested>;
  /** Does it. */
  readonly confirm: (confirmation: CodeConfirmation) => Promise<Result>;
  /** Called when it is done. The caller closes the dialog, or shows a result in another. */
  readonly onDone: (result: Result) => void;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

/** A dialog for an action that a mailed code confirms: what will happen, then the code, then done. */
export function ConfirmByCode<Result>(props: ConfirmByCodeProps<Result>) {
  const { title, isOpen, onClose } = props;
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose} size="small" isGuarded>
      <Steps {...props} />
    </Dialog>
  );
}

function Steps<Result>(props: ConfirmByCodeProps<Result>) {
  const common = useCommon();
  const email = useSession().user?.email ?? '';
  const [challengeId, setChallengeId] = useState<string | null>(null);
  const [code, setCode] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setIsBusy] = useState(false);
  const run = (work: () => Promise<void>): void => {
    setIsBusy(true);
    setError(null);
    work().then(
      () => setIsBusy(false),
      (reason: unknown) => {
        setError(reason);
        setIsBusy(false);
      },
    );
  };
  const mailCode = (): void =>
    run(async () => {
      const requested = await props.requestCode(email);
      setChallengeId(requested.challenge_id);
      setCode('');
    });
  const confirm = (): void =>
    run(async () => props.onDone(await props.confirm({ challenge_id: challengeId!, code })));
  useEffect(() => setError(null), [code]);
  if (challengeId === null) {
    return (
      <>
        <div class="prose">{props.children}</div>
        <p class="soft">{common('codeWillBeMailed', { email })}</p>
        <ErrorText error={error} />
        <DialogActions>
          <Button onClick={props.onClose}>{common('cancel')}</Button>
          <Button kind="primary" busy={isBusy} onClick={mailCode}>
            {common('mailCode')}
          </Button>
        </DialogActions>
      </>
    );
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isWholeCode(code) && !isBusy) confirm();
      }}
    >
      <p>{common('codeMailed', { email })}</p>
      <CodeField value={code} onChange={setCode} error={error} />
      <DialogActions>
        <Button kind="quiet" disabled={isBusy} onClick={mailCode}>
          {common('mailAgain')}
        </Button>
        <Button kind={props.kind ?? 'primary'} type="submit" busy={isBusy} disabled={!isWholeCode(code)}>
          {props.action}
        </Button>
      </DialogActions>
    </form>
  );
}
