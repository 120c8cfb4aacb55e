import { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { DeadLetters } from '../../shared/ledger/dead-letters.ts';
import { tryParseLedgerEntry } from '../../shared/ledger/usage-event.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { FoundDifferences, RefusedError, UsageError, type AdminContext, type AdminVerb } from './command.ts';
import { findAccountId } from './find-account.ts';
import { endProgress, showProgress } from './progress.ts';
import { quote } from './to-printable.ts';
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
    help: 'lists the entries of the ledger that no worker could read completely, and whether their money is counted',
    positionals: 0,
    options: [],
    columns: ['entry', 'account', 'counted', 'reason'],
    run: async ({ redis }) => listDead(redis),
  },
  retry: {
    usage: '',
    help: 'returns the entries that are not counted to the ledger, if this release can read them; each counts once',
    positionals: 0,
    options: [],
    run: retryDead,
  },
  discard: {
    usage: '<entry>',
    help: 'deletes an entry that "ledger dead" lists, for good, or with "counted" all whose money is counted',
    positionals: 1,
    options: [],
    run: discardDead,
  },
};

async function* listDead(redis: RedisClient): AsyncGenerator {
  for await (const { shard, streamId, accountId, isCounted, reason, fields } of new DeadLetters(
    redis,
  ).list()) {
    yield { entry: `${shard}:${streamId}`, account: accountId, counted: isCounted, reason, fields };
  }
}

async function retryDead({ redis, hotAccounts }: AdminContext): Promise<unknown> {
  const letters = new DeadLetters(redis);
  const counts = { returned: 0, unreadable: 0 };
  for await (const letter of letters.list()) {
    if (letter.isCounted) continue;
    if (tryParseLedgerEntry(letter.streamId, letter.fields) === null) {
      counts.unreadable += 1;
      continue;
    }
    // In this order a crash at any point leaves the letter to the next run, and what it repeats counts once.
    await letters.returnToLedger(letter);
    if (letter.accountId !== null) await hotAccounts.reload(letter.accountId);
    await letters.delete(letter);
    counts.returned += 1;
  }
  return counts;
}

async function discardDead({ redis, positionals: [given = ''] }: AdminContext): Promise<unknown> {
  const letters = new DeadLetters(redis);
  if (given === 'counted') {
    let discarded = 0;
    for await (const letter of letters.list())
      if (letter.isCounted && (await letters.delete(letter))) discarded += 1;
    return { discarded };
  }
  const [, shard, streamId] = /^(\d{1,9}):(\d{1,20}-\d{1,20})$/.exec(given) ?? [];
  if (streamId === undefined)
    throw new UsageError(
      `The entry must look like 12:1764115200000-0, or be the word counted; it is ${quote(given)}.`,
    );
  if (!(await letters.delete({ shard: Number(shard), streamId })))
    throw new RefusedError(`There is no entry ${given} among those that "admin ledger dead" lists.`);
  return { discarded: 1 };
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
