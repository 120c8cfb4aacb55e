import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import { useFieldErrors } from '../../admin/accounts/field-errors.ts';
import { useFocusOnProblem } from '../../admin/accounts/settings-form.ts';
import { adminApi, call, consoleQueries, type Schema } from '../../admin/api.ts';
import { ApiError } from '../../lib/api-error.ts';
import { createKey } from '../../lib/create-key.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';
import { ErrorText } from '../../ui/states.tsx';
import { nameOf, readAccount, type Account } from './account.ts';
import { emptyCredit, findCreditProblems, writeCredit, type CreditDraft } from './credit-draft.ts';
import { CreditMade, CreditPreview } from './credit-effect.tsx';
import type en from './messages.en.ts';

const fields = ['amount', 'free_requests', 'note'] as const;

export interface MadeCredit {
  readonly credit: Schema<'AccountCredit'>;
  /** In roubles. */
  readonly requested: number;
  /** Afterwards; null if it could not be read. */
  readonly account: Account | null;
}

/** Adds money or free requests to an account, or takes them back, and says what came of it. */
export function CreditDialog({
  account,
  onClose,
}: {
  readonly account: Account;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const [draft, setDraft] = useState(emptyCredit);
  const [made, setMade] = useState<MadeCredit | null>(null);
  return (
    <Dialog
      title={t('creditTitle', { name: nameOf(account) })}
      isOpen
      isGuarded={made === null && draft !== emptyCredit}
      onClose={onClose}
    >
      {made === null ? (
        <CreditForm account={account} draft={draft} onChange={setDraft} onMade={setMade} onClose={onClose} />
      ) : (
        <CreditMade made={made} onClose={onClose} />
      )}
    </Dialog>
  );
}

/** @param key the same for each call of a dialog, so that a repeated one credits once */
async function makeCredit(accountId: string, key: string, draft: CreditDraft): Promise<MadeCredit> {
  const body = writeCredit(draft);
  const credit = await call(
    adminApi.POST('/v1/admin/accounts/{account_id}/credits', {
      params: { path: { account_id: accountId }, header: { 'Idempotency-Key': key } },
      body,
    }),
  );
  // It is made, whatever becomes of reading the balance.
  const account = await readAccount(accountId).catch(() => null);
  return { credit, requested: body.amount, account };
}

function CreditForm({
  account,
  draft,
  onChange,
  onMade,
  onClose,
}: {
  readonly account: Account;
  readonly draft: CreditDraft;
  readonly onChange: (draft: CreditDraft) => void;
  readonly onMade: (made: MadeCredit) => void;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  const [key] = useState(createKey);
  const [checks, setChecks] = useState(0);
  const work = useMutation({
    mutationFn: () => makeCredit(account.id, key, draft),
    onSuccess: async (made) => {
      onMade(made);
      await consoleQueries.invalidateQueries();
    },
  });
  const problems = findCreditProblems(draft);
  const errors = useFieldErrors(fields, checks > 0 ? problems : {}, work.error);
  const form = useFocusOnProblem(checks, work.error);
  const isConflict = work.error instanceof ApiError && work.error.code === 'idempotency_conflict';
  const change = (next: Partial<CreditDraft>): void => {
    onChange({ ...draft, ...next });
    if (work.isError) work.reset();
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setChecks(checks + 1);
    if (Object.keys(problems).length === 0 && !work.isPending) work.mutate();
  };
  const amount = 'amount' in problems ? 0 : writeCredit(draft).amount;
  return (
    <form ref={form} class="settings-form" onSubmit={submit} noValidate>
      <div class="settings-row">
        <Field
          label={t('amount')}
          hint={t('amountHint')}
          inputMode="text"
          autoComplete="off"
          hasFocus
          maxLength={30}
          value={draft.amount}
          error={errors.of('amount')}
          onInput={(event) => change({ amount: event.currentTarget.value })}
        />
        <Field
          label={t('creditFree')}
          hint={t('creditFreeHint')}
          autoComplete="off"
          maxLength={20}
          value={draft.free_requests}
          error={errors.of('free_requests')}
          onInput={(event) => change({ free_requests: event.currentTarget.value })}
        />
      </div>
      <Field
        label={t('creditNote')}
        hint={t('creditNoteHint')}
        autoComplete="off"
        maxLength={500}
        value={draft.note}
        error={errors.of('note')}
        onInput={(event) => change({ note: event.currentTarget.value })}
      />
      <CreditPreview account={account} amount={amount} />
      {isConflict ? (
        <p class="error-text" role="alert">
          {t('creditedAlready')}
        </p>
      ) : (
        <ErrorText error={errors.rest} />
      )}
      <DialogActions>
        <Button onClick={onClose}>{common('cancel')}</Button>
        <Button kind={amount < 0 ? 'danger' : 'primary'} type="submit" busy={work.isPending}>
          {amount < 0
            ? t('takeAmount', { amount: format.exactMoney(-amount) })
            : amount > 0
              ? t('addAmount', { amount: format.exactMoney(amount) })
              : t('credit')}
        </Button>
      </DialogActions>
    </form>
  );
}
