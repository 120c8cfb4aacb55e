import type { ComponentChildren } from 'preact';
import type { ApiAccount } from '../../lib/accounts.ts';
import { useDraft } from '../../lib/draft.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Money } from '../../ui/money.tsx';
import { beginLimits, type LimitsDraft } from './limits-draft.ts';
import { LimitsDialog } from './limits-dialog.tsx';
import type en from './messages.en.ts';

type Budget = NonNullable<ApiAccount['budget']>;

/** What the owner and the operator limit. */
export function LimitsCard({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const [draft, setDraft] = useDraft<LimitsDraft | null>(`limits ${account.id}`, null);
  return (
    <Card
      title={t('limits')}
      actions={
        <Button size="small" onClick={() => setDraft(beginLimits(account))}>
          {t('change')}
        </Button>
      }
    >
      <div class="keys-limits">
        <Part title={t('budget')}>
          <Budgets account={account} />
        </Part>
        <Part title={t('lowBalance')}>
          <LowBalance account={account} />
        </Part>
        <Part title={t('models')}>
          <Models account={account} />
        </Part>
      </div>
      <LimitsDialog account={account} draft={draft} onChange={setDraft} />
    </Card>
  );
}

const Part = ({ title, children }: { readonly title: string; readonly children: ComponentChildren }) => (
  <div class="keys-limit">
    <h3>{title}</h3>
    {children}
  </div>
);

function Budgets({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const own = account.budget ?? null;
  const operators = account.limits?.budget ?? null;
  const tokens = account.limits?.tokens_per_minute ?? null;
  return (
    <>
      {own !== null && <BudgetLine budget={own} name={t('budgetOfYours')} />}
      {operators !== null && <BudgetLine budget={operators} name={t('budgetOfOperator')} />}
      {own === null && operators === null && <p class="soft">{t('noBudget')}</p>}
      {tokens !== null && (
        <p class="small soft">
          {t('tokens')}: {format.number(tokens)}
        </p>
      )}
    </>
  );
}

function BudgetLine({ budget, name }: { readonly budget: Budget; readonly name: string }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { amount, period, spent, reserved, resets_at } = budget;
  const used = Number(spent) + Number(reserved);
  return (
    <div class="keys-budget">
      <p>
        <strong>{t(`per_${period}`, { amount: format.money(amount) })}</strong>{' '}
        <span class="soft small">{name}</span>
      </p>
      <progress
        class={`keys-meter ${used >= Number(amount) ? 'full' : ''}`}
        max={Math.max(Number(amount), 1e-9)}
        value={Math.min(used, Number(amount))}
        aria-label={name}
      />
      <p class="small soft">
        {t.nodes('spentOf', { spent: <Money value={spent} /> })}
        {Number(reserved) > 0 && <>, {t('reserved', { amount: format.money(reserved) })}</>}
        {' · '}
        {t('resets', { time: format.dateTime(resets_at) })}
      </p>
    </div>
  );
}

function LowBalance({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const threshold = account.low_balance ?? null;
  return threshold === null ? (
    <p class="soft">{t('lowBalanceOff')}</p>
  ) : (
    <p>{t('lowBalanceAt', { amount: format.money(threshold) })}</p>
  );
}

const maxShownModels = 8;

function Models({ account }: { readonly account: ApiAccount }) {
  const t = useMessages<typeof en>();
  const own = account.models ?? null;
  const operators = account.limits?.models ?? null;
  return (
    <>
      {own === null ? <p class="soft">{t('allModels')}</p> : <ModelTags ids={own} />}
      {operators !== null && (
        <>
          <p class="small soft">{t('budgetOfOperator')}</p>
          <ModelTags ids={operators} />
        </>
      )}
    </>
  );
}

function ModelTags({ ids }: { readonly ids: readonly string[] }) {
  const t = useMessages<typeof en>();
  const rest = ids.length - maxShownModels;
  return (
    <ul class="keys-tags">
      {ids.slice(0, maxShownModels).map((id) => (
        <li key={id} class="tag">
          {id}
        </li>
      ))}
      {rest > 0 && <li class="small soft">{t('andMore', { count: rest })}</li>}
    </ul>
  );
}
