import { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { DeadLetters } from '../../shared/ledger/dead-letters-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { parseStreamId } from '../../shared/ledger/usage-event.ts';
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
  dead: {
    usage: '',
    help: 'lists the entries that no worker could read, and that were set aside',
    positionals: 0,
    options: [],
    columns: ['written_at', 'shard', 'reason', 'account'],
    run: async ({ redis }) => listDead(new DeadLetters(redis)),
  },
  retry: {
    usage: '',
    help: 'puts the entries that were set aside back, once a release that can read them runs',
    positionals: 0,
    options: [],
    run: retryDead,
  },
};

async function* listDead(letters: DeadLetters): AsyncGenerator {
  for await (const { shard, entry, reason, accountId, fields } of letters.list()) {
    const writtenAt = new Date(parseStreamId(entry).ms).toISOString();
    yield { written_at: writtenAt, shard, entry, reason, account: accountId, fields };
  }
}

async function retryDead({ redis }: AdminContext): Promise<unknown> {
  const letters = new DeadLetters(redis);
  let putBack = 0;
  for await (const letter of letters.list()) if (await letters.putBack(letter)) putBack += 1;
  return { put_back: putBack };
}

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
