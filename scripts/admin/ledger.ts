import { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { FoundDifferences, type AdminContext, type AdminVerb } from './command.ts';
import { findAccountId } from './find-account.ts';
import { endProgress, showProgress } from './progress.ts';
import { verifyLedger } from './verify/verify-ledger.ts';

export const ledgerVerbs: Record<string, AdminVerb> = {
  verify: {
    usage: '[--account <account>] [--release-orphans]',
    help:
      'recomputes balances and charges, and exits with 1 if any differs; --release-orphans gives back what requests without ' +
      'a process still hold',
    positionals: 0,
    options: ['account'],
    flags: ['release-orphans'],
    run: verify,
  },
};

async function verify(context: AdminContext): Promise<unknown> {
  const { redis, mongo, accounts, ledger, options, flags } = context;
  const given = options['account'];
  const verification = await verifyLedger(
    {
      redis,
      accounts,
      ledger,
      prices: new PriceStore(mongo.db),
      reservations: new ReservationStore(redis),
    },
    {
      account: given === undefined ? null : await findAccountId(context, given),
      releaseOrphans: flags.has('release-orphans'),
      onProgress: (accounts) => showProgress(`${accounts} accounts checked`),
    },
  );
  endProgress();
  if (verification.differences.length > 0) throw new FoundDifferences(verification);
  return verification;
}
