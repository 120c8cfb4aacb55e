import { useMutation } from '@tanstack/preact-query';
import { useEffect, useRef, useState } from 'preact/hooks';
import { consoleQueries } from '../api.ts';
import { findProblems, type AccountDraft, type Setting } from './account-draft.ts';
import { useFieldErrors } from './field-errors.ts';
import type { FieldsProps } from './setting-fields.tsx';

/**
 * A form of settings: it is checked when it is sent, and what is wrong is said beside the fields, of which the first one
 * gets the focus.
 * @param send is given a draft without problems
 */
export function useSettingsForm<Result>({
  initial,
  settings,
  isNew = false,
  send,
  onDone,
}: {
  readonly initial: AccountDraft;
  readonly settings: readonly Setting[];
  readonly isNew?: boolean;
  readonly send: (draft: AccountDraft) => Promise<Result>;
  readonly onDone: (result: Result) => void;
}) {
  const [draft, setDraft] = useState(initial);
  const [checks, setChecks] = useState(0);
  const work = useMutation({
    mutationFn: () => send(draft),
    onSuccess: async (result) => {
      onDone(result);
      await consoleQueries.invalidateQueries();
    },
  });
  const problems = findProblems(draft, settings, isNew);
  const errors = useFieldErrors(settings, checks > 0 ? problems : {}, work.error);
  const form = useFocusOnProblem(checks, work.error);
  const fields: FieldsProps = {
    draft,
    errors,
    change: (change) => {
      setDraft((before) => ({ ...before, ...change }));
      if (work.isError) work.reset();
    },
  };
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecks(checks + 1);
    if (Object.keys(problems).length === 0 && !work.isPending) work.mutate();
  };
  return { fields, form: { ref: form, onSubmit, noValidate: true }, work, isChanged: draft !== initial };
}

/** Moves the focus to the first field that is wrong, each time that the form was checked or refused. */
export function useFocusOnProblem(checks: number, error: unknown) {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (checks > 0) form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus();
  }, [checks, error]);
  return form;
}
