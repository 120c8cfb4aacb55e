import { useMutation } from '@tanstack/preact-query';
import { describeError } from '../lib/api-error.ts';
import { useLanguage } from '../lib/language.tsx';
import { Button, type ButtonProps } from '../ui/button.tsx';
import { showToast } from '../ui/toast.tsx';
import { consoleQueries } from './api.ts';

/** A button of an action that takes nothing away, and is done at once. Everything that was read is read again. */
export function QuickAction({
  run,
  done,
  ...button
}: Omit<ButtonProps, 'onClick' | 'busy'> & {
  readonly run: () => Promise<unknown>;
  /** Says that it is done. */
  readonly done: string;
}) {
  const language = useLanguage();
  const work = useMutation({
    mutationFn: run,
    onSuccess: async () => {
      showToast(done);
      await consoleQueries.invalidateQueries();
    },
    onError: (error) => showToast(describeError(error, language), 'error'),
  });
  return <Button {...button} busy={work.isPending} onClick={() => work.mutate()} />;
}
