// decision 0096
import type { AccountDocument, AccountStore } from '../../shared/accounts/account-store.ts';
import type { LinkStore } from '../../shared/account-area/link-store.ts';
import type { Mail, MailLanguage } from '../../shared/account-area/mail.ts';
import type { MailQueue } from '../../shared/account-area/mail-queue.ts';
import type { UserStore } from '../../shared/account-area/user-store.ts';
import { formatRub } from '../../shared/encoding/money.ts';
import type { LowBalance } from '../../shared/ledger/low-balance.ts';

export interface LowBalanceDeps {
  readonly accounts: Pick<AccountStore, 'findLow' | 'markLowMailed'>;
  readonly links: Pick<LinkStore, 'findByAccount'>;
  readonly users: Pick<UserStore, 'findById'>;
  readonly mails: Pick<MailQueue, 'add'>;
}

const maxPerRun = 100;
/** Of mails to an address that belongs to no user. */
const defaultLanguage: MailLanguage = 'ru';

/**
 * Queues a mail for each balance that has fallen below the threshold of its account. Idempotent: the id of the mail is
 * that of the fall, so a process that dies before it records that the mail is queued causes no second one. Several
 * processes may do so concurrently.
 */
export async function mailLowBalances(deps: LowBalanceDeps): Promise<void> {
  const failures: unknown[] = [];
  for (const account of await deps.accounts.findLow(maxPerRun)) {
    // A failure must not block the other mails.
    await mailLowBalance(deps, account).catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0)
    throw new AggregateError(failures, `${failures.length} mails about low balances could not be queued`);
}

async function mailLowBalance(deps: LowBalanceDeps, account: AccountDocument): Promise<void> {
  const { low } = account;
  if (low === undefined) return;
  const mail = await writeMail(deps, account, low);
  if (mail !== null) await deps.mails.add(mail, { id: `low-${account._id}-${low.id}` });
  await deps.accounts.markLowMailed(account._id, low);
}

/** Returns null if nobody can be told. */
async function writeMail(
  { links, users }: LowBalanceDeps,
  { _id, name, email, keyMasked, balanceNano, lowBalanceNano }: AccountDocument,
  { at }: LowBalance,
): Promise<Mail | null> {
  const link = await links.findByAccount(_id);
  const user = link === null ? null : await users.findById(link.userId);
  const recipient = email ?? user?.email;
  if (recipient === undefined || lowBalanceNano === undefined) return null;
  return {
    kind: 'notice',
    email: recipient,
    language: user?.language ?? defaultLanguage,
    event: 'balance-low',
    accountLabel: name ?? link?.label ?? keyMasked,
    at: at.getTime(),
    amounts: { balance: formatRub(balanceNano), threshold: formatRub(lowBalanceNano) },
  };
}
