import { useState } from 'preact/hooks';
import { useMutation } from '@tanstack/preact-query';
import { adminApi, call, consoleQueries, type Schema } from '../../admin/api.ts';
import { useConsole } from '../../admin/texts.ts';
import { createKey } from '../../lib/create-key.ts';
import { ApiError, findFieldError } from '../../lib/api-error.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useLanguage, useMessages } from '../../lib/language.tsx';
import { toZoned } from '../../lib/zoned-time.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';
import { ErrorText } from '../../ui/states.tsx';
import { checkDraft, emptyDraft, readDraft, sumUp, type AskedCodes, type CodesDraft } from './codes-draft.ts';
import { CreatedCodes } from './created-codes.tsx';
import type en from './messages.en.ts';
import { useValue } from './use-value.ts';

export interface Created extends Schema<'CreatedCodes'> {
  readonly asked: AskedCodes;
}

interface CreateProps {
  readonly onClose: () => void;
  /** @param batch of the codes that were created */
  readonly onShowBatch: (batch: string) => void;
}

/** Creates codes, once for each time that it is opened, and shows them. Render it while it is open. */
export function CreateDialog({ onClose, onShowBatch }: CreateProps) {
  const t = useMessages<typeof en>();
  const [created, setCreated] = useState<Created | null>(null);
  if (created !== null) return <CreatedCodes created={created} onClose={onClose} onShowBatch={onShowBatch} />;
  return (
    <Dialog title={t('create')} isOpen onClose={onClose} isGuarded>
      <CreateForm onClose={onClose} onCreated={setCreated} />
    </Dialog>
  );
}

function CreateForm({
  onClose,
  onCreated,
}: {
  readonly onClose: () => void;
  readonly onCreated: (created: Created) => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const shared = useConsole();
  const language = useLanguage();
  const { timeZone } = useFormat();
  const [key] = useState(createKey);
  const [draft, setDraft] = useState<CodesDraft>(emptyDraft);
  const [isChecked, setIsChecked] = useState(false);
  const work = useMutation({
    mutationFn: async (asked: AskedCodes): Promise<Created> => ({
      ...(await call(
        adminApi.POST('/v1/admin/codes', { params: { header: { 'Idempotency-Key': key } }, body: asked }),
      )),
      asked,
    }),
    onSuccess: async (created) => {
      onCreated(created);
      await consoleQueries.invalidateQueries();
    },
    // It may have created them all the same.
    onError: () => consoleQueries.invalidateQueries({ queryKey: ['codes'] }),
  });
  const faults = isChecked ? checkDraft(draft) : {};
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setIsChecked(true);
    if (Object.keys(checkDraft(draft)).length === 0 && !work.isPending)
      work.mutate(readDraft(draft, timeZone));
  };
  const field = (name: keyof CodesDraft, apiName: string) => ({
    value: draft[name],
    error: faults[name] === undefined ? findFieldError(work.error, apiName, language) : t(faults[name]),
    onInput: (event: { readonly currentTarget: HTMLInputElement }) =>
      setDraft({ ...draft, [name]: event.currentTarget.value }),
  });
  return (
    <form onSubmit={submit} noValidate>
      <div class="admin-codes-fields">
        <Field label={t('count')} inputMode="numeric" hasFocus {...field('count', 'count')} />
        <Field label={t('balance')} inputMode="decimal" {...field('balance', 'balance')} />
        <Field label={t('freeRequests')} inputMode="numeric" {...field('freeRequests', 'free_requests')} />
        <Field
          label={t('expires')}
          type="date"
          min={toZoned(Date.now(), timeZone).slice(0, 10)}
          {...field('expires', 'expires_at')}
        />
      </div>
      <p class="soft small">{t('expiresHint', { zone: timeZone })}</p>
      <Sum draft={draft} />
      <p class="soft small">{shared('recorded')}</p>
      {isAlreadyMade(work.error) ? (
        <p class="error-text" role="alert">
          {t('alreadyMade')}
        </p>
      ) : (
        <ErrorText error={work.error} />
      )}
      <DialogActions>
        <Button onClick={onClose}>{common('cancel')}</Button>
        <Button kind="primary" type="submit" busy={work.isPending}>
          {t('createNow')}
        </Button>
      </DialogActions>
    </form>
  );
}

/** An earlier call, whose response was lost, has created codes of another value. */
const isAlreadyMade = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'idempotency_conflict';

/** What will be given away, before it is made. */
function Sum({ draft }: { readonly draft: CodesDraft }) {
  const t = useMessages<typeof en>();
  const value = useValue();
  const sum = sumUp(draft);
  return (
    <p class="admin-codes-sum" role="status">
      {sum === null
        ? t('noSum')
        : t('sum', { codes: t('codes', { count: sum.count }), value: value(sum.nano, sum.freeRequests) })}
    </p>
  );
}
