import { setTimeout as delay } from 'node:timers/promises';
import { AuditLogStore } from '../../shared/admin/audit-log-store.ts';
import { finishClaims } from './finish-claims.ts';
import type { BanWatch } from '../../shared/money/ban-watch.ts';
import { startRequestHeartbeat } from '../../shared/money/heartbeat-requests.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { apiFilePrefix, filePrefix } from '../../shared/platform/storage/file-name.ts';
import { answerPrefix } from '../../shared/platform/storage/lifecycle-rules.ts';
import { FileStore } from '../../shared/work/files/file-store.ts';
import type { Stores } from '../../shared/stores/open-stores.ts';
import type { Faults } from '../reporting/faults.ts';
import { queuePendingNotices } from '../../shared/account-area/queue-notice.ts';
import { startLedgerReader } from '../ledger/ledger-reader.ts';
import { ShardLeases } from '../ledger/shard-leases.ts';
import { FileKeeper } from './file-keeper.ts';
import { forgetOldSpending } from './forget-old-spending.ts';
import { mailLowBalances } from './mail-low-balances.ts';
import { startPreparing } from './prepare-stores.ts';
import { runPeriodically } from './run-periodically.ts';
import { startSweepingFiles } from './sweep-files.ts';
import { OrphanSweeper } from './sweep-orphans.ts';
import { startSweepingUploads } from './sweep-uploads.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

export interface MaintenanceOptions {
  readonly stores: Stores;
  readonly workerId: string;
  readonly bans: BanWatch;
  /** The requests that the worker is running, except durable jobs, which have their own leases. */
  readonly listRequests: Parameters<typeof startRequestHeartbeat>[1];
  /** Checks whether the api processes that wait for this worker's replies are alive. */
  readonly probeReaders: () => void;
  readonly faults: Faults;
  readonly log: Logger;
}

/**
 * Starts everything a worker does besides running requests: prepares the stores, reads the ledger, and cleans up after
 * dead processes.
 */
export function startMaintenance(options: MaintenanceOptions): Running {
  const { stores, workerId, faults, log } = options;
  const { redis, accounts, hotAccounts, ledger } = stores;
  const preparing = startPreparing(listPreparations(stores, log), log);
  const leases = new ShardLeases(redis, workerId, redisKeys.ledgerLease);
  const ledgerReader = startLedgerReader({
    redis,
    store: ledger,
    accounts,
    hotAccounts,
    leases,
    faults,
    log,
  });
  const tasks = startPeriodicTasks(options);
  return {
    async stop() {
      await preparing.stop();
      await Promise.all(tasks.map((task) => task.stop()));
      await ledgerReader.stop();
    },
  };
}

function listPreparations({ accounts, codes, ledger, mongo, objects, web }: Stores, log: Logger) {
  return {
    accounts: () => accounts.createIndexes(),
    keySecrets: async () => {
      if (await accounts.prepareSecrets()) return;
      log.warn(
        'MASTER_KEY has changed; API keys stored with the previous one can only be shown if it is set again',
      );
    },
    codes: () => codes.createIndexes(),
    ledger: () => ledger.createIndexes(),
    web: () => web.createIndexes(),
    auditLog: () => new AuditLogStore(mongo.db).createIndexes(),
    bucket: async () => {
      if (await objects.prepareBucket()) return;
      // Another worker may have just created the bucket and be about to add the rules.
      await delay(2_000);
      if (await objects.prepareBucket()) return;
      log.warn(
        `The bucket has no rules that delete "${filePrefix}" and "${answerPrefix}" after a day and "${apiFilePrefix}" after ` +
          '31 days, or does not let this service read them. If the bucket was not created by this service, its rules are not changed: add the rules, or set ' +
          'S3_MANAGE_BUCKET=on. If its server does not support lifecycle rules, delete old objects by other means. Until ' +
          'then, responses stored for an Idempotency-Key are never deleted.',
      );
    },
  };
}

function startPeriodicTasks({
  stores,
  workerId,
  bans,
  listRequests,
  probeReaders,
  faults,
  log,
}: MaintenanceOptions): Running[] {
  const { redis, catalog, prices, accounts, hotAccounts, codes, ledger, objects, web, mails } = stores;
  const reservations = new ReservationStore(redis);
  const sweepLeases = new ShardLeases(redis, workerId, redisKeys.sweepLease);
  const sweeper = new OrphanSweeper(reservations, sweepLeases, log);
  const files = new FileKeeper({ files: new FileStore(redis), objects, leases: sweepLeases, log });
  const tasks = [
    { name: 'saving prices', intervalMs: 5_000, run: () => prices.save(catalog.current.models) },
    {
      name: 'finishing redeemed codes',
      intervalMs: 5_000,
      run: () => finishClaims({ redis, hotAccounts, codes, ledger, log }),
    },
    {
      name: 'queueing pending notices',
      intervalMs: 5_000,
      run: () => queuePendingNotices({ ...web, mails }),
    },
    {
      name: 'mailing low balances',
      intervalMs: 5_000,
      run: () => mailLowBalances({ ...web, accounts, mails }),
    },
    { name: 'checking for dead api processes', intervalMs: 1_000, run: probeReaders },
    {
      name: 'releasing orphaned reservations',
      intervalMs: liveness.request.reportMs,
      run: () => sweeper.sweep(),
    },
    { name: 'deleting files', intervalMs: 5_000, run: () => files.maintainShards() },
    {
      name: 'forgetting old spending',
      intervalMs: 3_600_000,
      run: () => forgetOldSpending({ redis, accounts }),
    },
  ];
  return [
    startRequestHeartbeat(reservations, listRequests, log),
    bans,
    ...tasks.map((task) => runPeriodically(task, faults)),
    startSweepingFiles({ redis, workerId, objects, log }),
    startSweepingUploads({ redis, workerId, objects, log }),
  ];
}
