import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { FoundProblems, UsageError, type AdminVerb, type ChangeContext } from './command.ts';
import { findAccountId } from './find-account.ts';
import { endProgress, showProgress } from './progress.ts';
import { quote } from '../../shared/platform/runtime/to-printable.ts';
import {
  discardCounted,
  discardEntry,
  dryRunDiscardEntry,
  listAllDeadEntries,
  readEntry,
} from '../../shared/admin/dead-entries.ts';
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
    help:
      'lists the ledger entries that could not be read completely, whether their amounts are counted, and which of the others ' +
      'the gateway credits again by itself',
    positionals: 0,
    options: [],
    columns: ['entry', 'account', 'kind', 'amount', 'counted', 'is_credited_again', 'reason'],
    run: async (context) => listAllDeadEntries(context),
  },
  discard: {
    usage: '<entry> [--dry-run]',
    help:
      'deletes an entry that "ledger dead" lists, the last record of it; "counted" deletes all that are counted; --dry-run ' +
      'only says what of one is in no balance',
    positionals: 1,
    options: [],
    flags: ['dry-run'],
    isChange: true,
    run: discardDead,
  },
};

async function discardDead(context: ChangeContext): Promise<unknown> {
  const { trail, flags, positionals } = context;
  const [given = ''] = positionals;
  const isDryRun = flags.has('dry-run');
  if (given === 'counted' && !isDryRun) return await discardCounted(context, trail);
  const place = readEntry(given);
  if (place === null)
    throw new UsageError(
      `The entry must look like 12:1764115200000-0${isDryRun ? '' : ', or be "counted"'}; it is ${quote(given)}.`,
    );
  if (isDryRun) return await dryRunDiscardEntry(context, place);
  return { discarded: 1, ...(await discardEntry(context, trail, place)) };
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
