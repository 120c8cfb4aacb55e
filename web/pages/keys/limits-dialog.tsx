import { useMutation } from '@tanstack/preact-query';
import { useState } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { useSession } from '../../lib/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Checkbox, Field, Select } from '../../ui/field.tsx';
import { ErrorText } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { changeAccount } from './account-changes.ts';
import { AllowedModelChoice } from './allowed-model-choice.tsx';
import {
  findProblems,
  periods,
  writeLimits,
  type LimitsDraft,
  type LimitsProblem,
  type LimitsProblems,
} from './limits-draft.ts';
import type en from './messages.en.ts';

interface LimitsProps {
  readonly account: ApiAccount;
  readonly onChange: (draft: LimitsDraft | null) => void;
}

/** Open while there is a draft. */
export function LimitsDialog({ draft, ...props }: LimitsProps & { readonly draft: LimitsDraft | null }) {
  const t = useMessages<typeof en>();
  return (
    <Dialog
      title={t('limitsTitle', { label: props.account.label })}
      isOpen={draft !== null}
      onClose={() => props.onChange(null)}
      isGuarded
    >
      {draft !== null && <LimitsForm {...props} draft={draft} />}
    </Dialog>
  );
}

function LimitsForm({ account, draft, onChange }: LimitsProps & { readonly draft: LimitsDraft }) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const [isChecked, setIsChecked] = useState(false);
  const problems = findProblems(draft, account);
  const save = useMutation({
    mutationFn: () => changeAccount(account.id, writeLimits(draft)),
    onSuccess: () => {
      showToast(t('limitsSaved'));
      onChange(null);
    },
  });
  const part = {
    account,
    draft,
    problems: isChecked ? problems : {},
    change: (change: Partial<LimitsDraft>): void => onChange({ ...draft, ...change }),
  };
  return (
    <form
      class="keys-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        setIsChecked(true);
        if (Object.keys(problems).length === 0 && !save.isPending) save.mutate();
      }}
    >
      <p class="soft">{t('limitsText')}</p>
      <BudgetPart {...part} />
      <ThresholdPart {...part} />
      <ModelsPart {...part} />
      <ErrorText error={save.error} />
      <DialogActions>
        <Button onClick={() => onChange(null)}>{common('cancel')}</Button>
        <Button kind="primary" type="submit" busy={save.isPending}>
          {common('save')}
        </Button>
      </DialogActions>
    </form>
  );
}

interface PartProps {
  readonly account: ApiAccount;
  readonly draft: LimitsDraft;
  readonly problems: LimitsProblems;
  readonly change: (change: Partial<LimitsDraft>) => void;
}

/** Returns a function that says what is wrong with a field; null if nothing. */
function useProblemText(account: ApiAccount): (problem: LimitsProblem | undefined) => string | null {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const operators = account.limits?.budget ?? null;
  return (problem) => {
    if (problem === undefined) return null;
    if (problem !== 'overOperator' || operators === null) return t(problem as 'wrongAmount');
    return t('overOperator', {
      amount: t(`per_${operators.period}`, { amount: format.money(operators.amount) }),
    });
  };
}

function BudgetPart({ account, draft, problems, change }: PartProps) {
  const t = useMessages<typeof en>();
  const describe = useProblemText(account);
  return (
    <fieldset class="keys-part">
      <Checkbox
        label={t('limitBudget')}
        checked={draft.hasBudget}
        onToggle={(hasBudget) => change({ hasBudget })}
      />
      {draft.hasBudget && (
        <div class="keys-part-fields">
          <Field
            label={t('amount')}
            inputMode="decimal"
            value={draft.amount}
            error={describe(problems.amount)}
            onInput={(event) => change({ amount: event.currentTarget.value })}
          />
          <Select
            label={t('period')}
            value={draft.period}
            choices={periods.map((value) => ({ value, label: t(value) }))}
            onChoose={(period) => change({ period })}
          />
          <p class="hint">{t('periodHint')}</p>
        </div>
      )}
    </fieldset>
  );
}

function ThresholdPart({ account, draft, problems, change }: PartProps) {
  const t = useMessages<typeof en>();
  const describe = useProblemText(account);
  const email = useSession().user?.email ?? '';
  return (
    <fieldset class="keys-part">
      <Checkbox
        label={t('limitThreshold')}
        checked={draft.hasThreshold}
        onToggle={(hasThreshold) => change({ hasThreshold })}
      />
      {draft.hasThreshold && (
        <div class="keys-part-fields">
          <Field
            label={t('threshold')}
            inputMode="decimal"
            value={draft.threshold}
            error={describe(problems.threshold)}
            onInput={(event) => change({ threshold: event.currentTarget.value })}
          />
          <p class="hint">{t('thresholdHint', { email })}</p>
        </div>
      )}
    </fieldset>
  );
}

function ModelsPart({ account, draft, problems, change }: PartProps) {
  const t = useMessages<typeof en>();
  const describe = useProblemText(account);
  return (
    <fieldset class="keys-part">
      <Checkbox
        label={t('limitModels')}
        checked={draft.hasModels}
        onToggle={(hasModels) => change({ hasModels })}
      />
      {draft.hasModels && (
        <AllowedModelChoice
          account={account}
          chosen={draft.models}
          error={describe(problems.models)}
          onChange={(models) => change({ models })}
        />
      )}
    </fieldset>
  );
}
