import test from 'ava';
import type { NoticeMail } from '../../../shared/account-area/mail.ts';
import type { WebLink, WebUser } from '../../../shared/account-area/web-models.ts';
import { changeAccount } from '../../../shared/accounts/change-account.ts';
import { runRefill } from '../../../shared/accounts/refill-script.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { mailLowBalances, type LowBalanceDeps } from '../../../workers/maintenance/mail-low-balances.ts';
import { charge } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

let services: LedgerServices;

test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

interface SentMail {
  readonly id: string | undefined;
  readonly mail: NoticeMail;
}

/** Sends mails into a list. Only the given account is linked. */
function collect(linkedId: string | null = null): { sent: SentMail[]; deps: LowBalanceDeps } {
  const sent: SentMail[] = [];
  const link = { userId: 'u', label: 'My shop' } as WebLink;
  const user = { email: 'owner@example.com', language: 'en' } as WebUser;
  const deps: LowBalanceDeps = {
    accounts: services.accounts,
    links: { findByAccount: async (id) => (id === linkedId ? link : null) },
    users: { findById: async () => user },
    mails: {
      add: async (mail, options) => {
        sent.push({ id: options?.id, mail: mail as NoticeMail });
      },
    },
  };
  return { sent, deps };
}

const refill = async (id: string, amountNano: bigint): Promise<void> => {
  const event = createRefillEvent(`refill-${id}-${amountNano}-${Math.random()}`, id, 'test');
  await runRefill(services.redis, { amountNano, freeRequests: 0, event });
};

test.serial(
  'a balance that falls below its threshold causes one mail, until it has risen above it and falls again',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000n });
    await services.moveAll();
    await changeAccount(services, account.id, {
      lowBalanceNano: 500n,
      email: 'shop@example.com',
      name: 'Shop',
    });
    const { sent, deps } = collect();
    await charge(services.redis, account, 500n);
    await services.moveAll();
    await mailLowBalances(deps);
    t.deepEqual(sent, []);
    await charge(services.redis, account, 1n);
    await services.moveAll();
    await Promise.all([mailLowBalances(deps), mailLowBalances(deps)]);
    // Two processes may queue the same mail; the queue knows its id.
    t.is(new Set(sent.map(({ id }) => id)).size, 1);
    t.like(sent[0]!.mail, {
      kind: 'notice',
      event: 'balance-low',
      email: 'shop@example.com',
      accountLabel: 'Shop',
      amounts: { balance: '0.000000499', threshold: '0.0000005' },
    });
    sent.length = 0;
    await charge(services.redis, account, 10n);
    await services.moveAll();
    await mailLowBalances(deps);
    t.deepEqual(sent, []);
    await refill(account.id, 100n);
    await services.moveAll();
    await charge(services.redis, account, 100n);
    await services.moveAll();
    await mailLowBalances(deps);
    t.is(sent.length, 1);
  },
);

test.serial(
  'a process that dies after it has queued a mail, and before it records that, queues it again under the same id',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000n });
    await services.moveAll();
    await changeAccount(services, account.id, { lowBalanceNano: 900n });
    await charge(services.redis, account, 200n);
    await services.moveAll();
    const { sent, deps } = collect(account.id);
    const dying: LowBalanceDeps['accounts'] = {
      findLow: (limit) => services.accounts.findLow(limit),
      markLowMailed: async () => {
        throw new Error('the process dies');
      },
    };
    await t.throwsAsync(mailLowBalances({ ...deps, accounts: dying }));
    await mailLowBalances(deps);
    await mailLowBalances(deps);
    t.is(sent.length, 2);
    t.is(sent[0]!.id, sent[1]!.id);
    t.regex(sent[0]!.id!, /^low-[\w-]+$/);
    t.like(sent[0]!.mail, { email: 'owner@example.com', language: 'en', accountLabel: 'My shop' });
  },
);

test.serial(
  'nobody is told of an account without an address, and of a balance that was below a new threshold already',
  async (t) => {
    const [silent, low] = [
      await services.createAccount({ balanceNano: 1_000n }),
      await services.createAccount({ balanceNano: 1_000n }),
    ];
    await services.moveAll();
    await changeAccount(services, silent.id, { lowBalanceNano: 1_000n });
    await changeAccount(services, low.id, { lowBalanceNano: 2_000n, email: 'low@example.com' });
    for (const account of [silent, low]) await charge(services.redis, account, 1n);
    await services.moveAll();
    const { sent, deps } = collect();
    await mailLowBalances(deps);
    t.deepEqual(sent, []);
    t.deepEqual(await services.accounts.findLow(10), []);
  },
);

test.serial('a threshold that is set while entries are applied is not missed', async (t) => {
  const account = await services.createAccount({ balanceNano: 1_000n });
  await services.moveAll();
  const reader = services.startReader();
  const charging = (async () => {
    for (let i = 0; i < 60; i++) await charge(services.redis, account, 10n);
  })();
  await changeAccount(services, account.id, { lowBalanceNano: 450n, email: 'x@example.com' });
  await charging;
  await reader.stop();
  await services.moveAll();
  const stored = await services.accounts.findById(account.id);
  t.is(stored?.balanceNano, 400n);
  t.truthy(stored?.low);
});
