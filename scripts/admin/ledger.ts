import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { DeadLetters } from '../../shared/ledger/dead-letters-store.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import {
  FoundProblems,
  CommandError,
  UsageError,
  type AdminContext,
  type AdminVerb,
  type ChangeContext,
} from './command.ts';
import { findAccountId } from './find-account.ts';
import { endProgress, showProgress } from './progress.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import { verifyLedger } from '../../shared/admin/verify/verify-ledger.ts';

export const ledgerVerbs: Record<string, AdminVerb> = {
  verify: {
    usage: '[--account <account>] [--release-orphans]',
    help:
      'recomputes balances and charges, and exits with 1 if any differs; --release-orphans releases the reservations of ' +
      'requests that no process is running',
    positionals: 0,
    options: ['account'],
    flags: ['release-orphans'],
    isChange: true,
    run: verify,
  },
  dead: {
    usage: '',
    help: 'lists the ledger entries that could not be read completely, and whether their amounts are counted',
    positionals: 0,
    options: [],
    columns: ['entry', 'account', 'counted', 'reason'],
    run: async ({ redis }) => listDead(redis),
  },
  discard: {
    usage: '<entry>',
    help: 'deletes an entry that "ledger dead" lists, the last record of it; "counted" deletes all that are counted',
    positionals: 1,
    options: [],
    isChange: true,
    run: discardDead,
  },
};

async function* listDead(redis: RedisClient): AsyncGenerator {
  for await (const letter of new DeadLetters(redis).list()) {
    const { id, shard, streamId, accountId: account, isCounted: counted, reason, fields } = letter;
    yield { entry: `${shard}:${id}`, stream_id: streamId, account, counted, reason, fields };
  }
}

async function discardDead(context: ChangeContext): Promise<unknown> {
  const { trail, positionals } = context;
  return await trail.run(
    { action: 'ledger.discard', id: positionals[0]! },
    () => discard(context),
    (discarded) => discarded,
  );
}

async function discard({ redis, positionals: [given = ''] }: AdminContext): Promise<object> {
  const letters = new DeadLetters(redis);
  if (given === 'counted') {
    let discarded = 0;
    for await (const letter of letters.list())
      if (letter.isCounted && (await letters.delete(letter))) discarded += 1;
    return { discarded };
  }
  const [, shard, id] = /^(\d{1,9}):(\d{1,20}-\d{1,20})$/.exec(given) ?? [];
  if (id === undefined)
    throw new UsageError(
      `The entry must look like 12:1764115200000-0, or be "counted"; it is ${quote(given)}.`,
    );
  if (!(await letters.delete({ shard: Number(shard), id })))
    throw new CommandError(`There is no entry ${given} among those that "admin ledger dead" lists.`);
  return { discarded: 1 };
}

async function verify(context: ChangeContext): Promise<unknown> {
  const { redis, mongo, accounts, ledger, options, flags, trail } = context;
  const given = options['account'];
  const account = given === undefined ? null : await findAccountId(context, given);
  const releaseOrphans = flags.has('release-orphans');
  const run = () =>
    verifyLedger(
      {
        redis,
        accounts,
        ledger,
        prices: new PriceStore(mongo.db),
        reservations: new ReservationStore(redis),
      },
      {
        account,
        releaseOrphans,
        onProgress: (accounts) => showProgress(`${accounts} accounts checked`),
      },
    );
  const verification = releaseOrphans
    ? await trail.run({ action: 'ledger.release-orphans', id: account ?? 'all' }, run)
    : await run();
  endProgress();
  if (verification.differences.length > 0) throw new FoundProblems(verification);
  return verification;
}
