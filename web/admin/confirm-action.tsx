import { useMutation, useQuery } from '@tanstack/preact-query';
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { describeError } from '../lib/api-error.ts';
import { useCommon, useLanguage } from '../lib/language.tsx';
import { useUniqueId } from '../lib/unique-id.ts';
import { Button, type ButtonKind } from '../ui/button.tsx';
import { Dialog, DialogActions } from '../ui/dialog.tsx';
import { Field } from '../ui/field.tsx';
import { ErrorText, Skeleton } from '../ui/states.tsx';
import { consoleQueries } from './api.ts';
import type { GivenReason } from './dry-run.ts';
import { findReasonProblem, ReasonField, toGivenReason } from './reason-field.tsx';
import { useConsole } from './texts.ts';

export interface ConfirmActionProps<Effect, Result> {
  readonly title: string;
  /** The name of the action, on its button. */
  readonly action: string;
  readonly kind?: ButtonKind;
  /** Asks the API what the action would do, without doing it. */
  readonly preview?: (signal: AbortSignal) => Promise<Effect>;
  /** Says it, in numbers. */
  readonly describe?: (effect: Effect) => ComponentChildren;
  /** A word to type first, such as the name of what is emptied. */
  readonly word?: string;
  /** Whether a reason must be given. */
  readonly needsReason?: boolean;
  /** Whether the fields in `children` are filled in. */
  readonly isReady?: boolean;
  /** Fields of the action, or more about it. */
  readonly children?: ComponentChildren;
  /** @param given the reason, if there is one: as the query of the change takes it */
  readonly run: (given: GivenReason) => Promise<Result>;
  /** Called when it is done; the caller closes the dialog. Everything that was read is read again. */
  readonly onDone: (result: Result) => void;
  readonly onClose: () => void;
}

/** A dialog that says what an action will do, asks once, and does it. Render it while it is open. */
export function ConfirmAction<Effect, Result>(props: ConfirmActionProps<Effect, Result>) {
  const { title, action, kind = 'danger', word, needsReason = false, isReady = true, children } = props;
  const t = useConsole();
  const common = useCommon();
  const [typed, setTyped] = useState('');
  const [reason, setReason] = useState('');
  const [isChecked, setIsChecked] = useState(false);
  const problem = findReasonProblem(reason, needsReason);
  const effect = useEffectOf(props);
  const isCounted = props.preview === undefined || effect.data !== undefined || effect.error !== null;
  // A second click may come before the first one is shown.
  const isSent = useRef(false);
  const work = useMutation({
    mutationFn: () => props.run(toGivenReason(reason)),
    onSuccess: async (result) => {
      props.onDone(result);
      // What the action would do is not asked again once it is done.
      await consoleQueries.invalidateQueries({ predicate: ({ queryKey: [name] }) => name !== effectName });
    },
    onError: () => {
      isSent.current = false;
    },
  });
  const isTyped = word === undefined || typed.trim() === word;
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setIsChecked(true);
    if (problem !== null || !isTyped || !isReady || !isCounted || isSent.current) return;
    isSent.current = true;
    work.mutate();
  };
  return (
    <Dialog title={title} isOpen onClose={props.onClose} isGuarded={reason !== '' || children !== undefined}>
      <form onSubmit={submit} noValidate>
        {props.preview !== undefined && <EffectText effect={effect} describe={props.describe} />}
        {children}
        <ReasonField
          value={reason}
          isRequired={needsReason}
          problem={isChecked ? problem : findReasonProblem(reason)}
          onChange={setReason}
        />
        {word !== undefined && (
          <Field
            label={t('typeToConfirm', { word })}
            autoComplete="off"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        )}
        <p class="soft small">{t('recorded')}</p>
        <ErrorText error={work.error} />
        <DialogActions>
          <Button onClick={props.onClose}>{common('goBack')}</Button>
          <Button
            kind={kind}
            type="submit"
            busy={work.isPending}
            disabled={!isTyped || !isReady || !isCounted}
          >
            {action}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

const effectName = 'effect';

/** Asks for the numbers once, when the dialog is opened. */
const useEffectOf = <Effect, Result>({ preview }: ConfirmActionProps<Effect, Result>) =>
  useQuery({
    queryKey: [effectName, useUniqueId()],
    queryFn: ({ signal }) => preview!(signal),
    enabled: preview !== undefined,
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });

function EffectText<Effect, Result>({
  effect: { data, error },
  describe,
}: Pick<ConfirmActionProps<Effect, Result>, 'describe'> & {
  readonly effect: { readonly data: Effect | undefined; readonly error: unknown };
}) {
  const t = useConsole();
  const language = useLanguage();
  if (data !== undefined)
    return (
      <div class="confirm-effect" role="status">
        {describe?.(data)}
      </div>
    );
  if (error !== null)
    return <p role="status">{t('notCounted', { reason: describeError(error, language) })}</p>;
  return (
    <div role="status" aria-label={t('counting')}>
      <Skeleton lines={1} height="3rem" />
    </div>
  );
}
