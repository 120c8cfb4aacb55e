import { setTimeout as delay } from 'node:timers/promises';
import { finishClaims } from '../../shared/accounts/finish-claims.ts';
import type { BanWatch } from '../../shared/accounts/ban-watch.ts';
import { startHolding } from '../../shared/billing/hold-requests.ts';
import { holdIntervalMs, ReservationStore } from '../../shared/billing/reservation-store.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { filePrefix } from '../../shared/storage/file-name.ts';
import { answerPrefix } from '../../shared/storage/lifecycle-rules.ts';
import { queuePendingNotices } from '../../shared/web/queue-notice.ts';
import { startLedgerReader } from '../ledger/ledger-reader.ts';
import { ShardLeases } from '../ledger/shard-leases.ts';
import type { WorkerStores } from '../worker-stores.ts';
import { startPreparing } from './prepare-stores.ts';
import { repeat } from './repeat.ts';
import { startSweepingFiles } from './sweep-files.ts';
import { OrphanSweeper } from './sweep-orphans.ts';

export interface UpkeepOptions {
  readonly stores: WorkerStores;
  readonly workerId: string;
  readonly bans: BanWatch;
  /** Those that the worker runs, but for durable jobs, which have leases of their own. */
  readonly listRequests: Parameters<typeof startHolding>[1];
  /** Asks the api processes that wait for the worker's answers whether they live. */
  readonly probeReaders: () => void;
  readonly log: Logger;
}

/** What a worker does besides requests: it prepares the stores, reads the ledger, and clears up after processes that died. */
export function startUpkeep(options: UpkeepOptions): Running {
  const { stores, workerId, log } = options;
  const { redis, accounts, hotAccounts, ledger } = stores;
  const preparing = startPreparing(listPreparations(stores, log), log);
  const leases = new ShardLeases(redis, workerId, redisKeys.ledgerLease);
  const ledgerReader = startLedgerReader({ redis, store: ledger, accounts, hotAccounts, leases, log });
  const chores = startChores(options);
  return {
    async stop() {
      await preparing.stop();
      await Promise.all(chores.map((chore) => chore.stop()));
      await ledgerReader.stop();
    },
  };
}

function listPreparations({ accounts, codes, ledger, objects, web }: WorkerStores, log: Logger) {
  return {
    accounts: () => accounts.createIndexes(),
    keySecrets: async () => {
      if (await accounts.prepareSecrets()) return;
      log.warn('MASTER_KEY has changed; set the former one to show API keys stored under it');
    },
    codes: () => codes.createIndexes(),
    ledger: () => ledger.createIndexes(),
    web: () => web.createIndexes(),
    bucket: async () => {
      if (await objects.prepareBucket()) return;
      // Another worker may have made the bucket a moment ago, and be about to put the rules on it.
      await delay(2_000);
      if (await objects.prepareBucket()) return;
      log.warn(
        `The bucket has no rules that delete "${filePrefix}" and "${answerPrefix}" after a day, or does not let this service ` +
          'read them. Either it was not made by this service, so its rules are left as they are: add the rules, or set ' +
          'S3_MANAGE_BUCKET=on. Or its server has no lifecycle rules: delete old objects by other means. Until then, answers ' +
          'that are kept for an Idempotency-Key are never deleted.',
      );
    },
  };
}

function startChores({ stores, workerId, bans, listRequests, probeReaders, log }: UpkeepOptions): Running[] {
  const { redis, catalog, prices, hotAccounts, codes, ledger, objects, web, mails } = stores;
  const reservations = new ReservationStore(redis);
  const sweepLeases = new ShardLeases(redis, workerId, redisKeys.sweepLease);
  const sweeper = new OrphanSweeper(reservations, sweepLeases, log);
  const chores = [
    { name: 'remember prices', intervalMs: 5_000, run: () => prices.remember(catalog.current.models) },
    {
      name: 'finish redeemed codes',
      intervalMs: 5_000,
      run: () => finishClaims({ redis, hotAccounts, codes, ledger, log }),
    },
    {
      name: 'queue pending notices',
      intervalMs: 5_000,
      run: () => queuePendingNotices({ ...web, mails }),
    },
    { name: 'look for dead api processes', intervalMs: 1_000, run: probeReaders },
    { name: 'sweep orphans', intervalMs: holdIntervalMs, run: () => sweeper.sweep() },
  ];
  return [
    startHolding(reservations, listRequests, log),
    bans,
    ...chores.map((chore) => repeat(chore, log)),
    startSweepingFiles({ redis, workerId, objects, log }),
  ];
}
