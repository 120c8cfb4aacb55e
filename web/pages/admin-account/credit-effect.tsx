import { useEffect, useRef } from 'preact/hooks';
import { useFormat } from '../../lib/format.ts';
import { useCommon, useMessages } from '../../lib/language.tsx';
import { DialogActions } from '../../ui/dialog.tsx';
import { addRoubles } from '../../lib/nano.ts';
import type { Account } from './account.ts';
import type { MadeCredit } from './credit-dialog.tsx';
import type en from './messages.en.ts';

/** What the balance is, and would be. @param amount in roubles */
export function CreditPreview({ account, amount }: { readonly account: Account; readonly amount: number }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { balance, reserved } = account;
  // What is taken back, at most.
  const available = Math.max(0, Number(addRoubles([balance, -reserved])));
  const change = amount < 0 ? Math.max(amount, -available) : amount;
  return (
    <p class="admin-account-preview" aria-live="polite">
      {amount === 0
        ? t('balanceNow', { balance: format.exactMoney(balance) })
        : t('balanceThen', {
            balance: format.exactMoney(balance),
            next: format.exactMoney(addRoubles([balance, change])),
          })}{' '}
      {change > amount && t('takenAtMost', { amount: format.exactMoney(available) })}
    </p>
  );
}

/** What was really credited, which may be less than was to be taken back, and the new balance. */
export function CreditMade({
  made: { credit, requested, account },
  onClose,
}: {
  readonly made: MadeCredit;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const common = useCommon();
  const format = useFormat();
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current?.focus(), []);
  const { amount, free_requests: free } = credit;
  const isLess = amount > requested;
  return (
    <>
      <div class="admin-account-made" role="status">
        {amount > 0 && <p>{t('added', { amount: format.exactMoney(amount) })}</p>}
        {(amount < 0 || isLess) && <p>{t('taken', { amount: format.exactMoney(Math.abs(amount)) })}</p>}
        {isLess && (
          <p class="admin-account-less">{t('takenLess', { amount: format.exactMoney(-requested) })}</p>
        )}
        {free !== 0 && <p>{t(free > 0 ? 'freeAdded' : 'freeTaken', { count: Math.abs(free) })}</p>}
        {account !== null && (
          <p>
            {t('newBalance', {
              balance: format.exactMoney(account.balance),
              free: format.number(account.free_requests),
            })}
          </p>
        )}
      </div>
      <DialogActions>
        <button ref={button} type="button" class="button primary medium" onClick={onClose}>
          {common('close')}
        </button>
      </DialogActions>
    </>
  );
}
