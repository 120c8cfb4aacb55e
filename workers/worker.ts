import { randomUUID } from 'node:crypto';
import { BanWatch } from '../shared/accounts/ban-watch.ts';
import { AccountStore } from '../shared/accounts/account-store.ts';
import { finishClaims } from '../shared/accounts/finish-claims.ts';
import { RefillCodeStore } from '../shared/accounts/refill-code-store.ts';
import { HotAccountStore } from '../shared/billing/hot-account-store.ts';
import { startHolding } from '../shared/billing/hold-requests.ts';
import { holdIntervalMs, ReservationStore } from '../shared/billing/reservation-store.ts';
import { CatalogStore } from '../shared/catalog/catalog-store.ts';
import { AppError } from '../shared/contract/errors.ts';
import { FairBudget } from '../shared/fairness/fair-budget.ts';
import { LedgerStore } from '../shared/ledger/ledger-store.ts';
import { PriceStore } from '../shared/ledger/price-store.ts';
import { countQueuedRuns } from '../shared/queue/fair-share.ts';
import { bullQueues, type QueueName } from '../shared/queue/job-kinds.ts';
import { PayloadStore } from '../shared/queue/payload-store.ts';
import { ReasoningStore } from '../shared/reasoning/reasoning-store.ts';
import { subscribeToInvalidations } from '../shared/redis/invalidation-channel.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../shared/redis/redis-client.ts';
import { redisChannels, redisKeys } from '../shared/redis/redis-keys.ts';
import { AnswerStore } from '../shared/reply/answer-store.ts';
import { KeptFramesStore, tooMuchKept } from '../shared/reply/kept-frames-store.ts';
import { ReplyPublisher, type ControlMessage } from '../shared/reply/reply-channel.ts';
import type { Config } from '../shared/runtime/config.ts';
import type { Running } from '../shared/runtime/lifecycle.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { runInBackground } from '../shared/runtime/run-in-background.ts';
import { openMongo } from '../shared/storage/mongo-client.ts';
import { ObjectStore } from '../shared/storage/object-store.ts';
import { TrafficRecorder } from '../shared/traffic/traffic-recorder.ts';
import { TrafficStore } from '../shared/traffic/traffic-store.ts';
import { WebhookSecretStore } from '../shared/webhooks/webhook-secret-store.ts';
import { startDurableJobs, type DurableJobs } from './durable-jobs.ts';
import { ActiveRuns } from './intake/active-runs.ts';
import { startQueuedIntake } from './intake/take-queued.ts';
import { startReadyIntake } from './intake/take-ready.ts';
import { AccountBanned, type JobDependencies } from './jobs/job-context.ts';
import { KeptAnswerMover } from './jobs/kept-answer-mover.ts';
import { createResponseBudget } from './jobs/response-memory.ts';
import { startLedgerReader } from './ledger/ledger-reader.ts';
import { ShardLeases } from './ledger/shard-leases.ts';
import { EmbeddingLines } from './embeddings/embedding-lines.ts';
import { VectorCacheStore } from './embeddings/vector-cache-store.ts';
import { createImageChecker } from './media/check-image.ts';
import { Decoders } from './media/decoders.ts';
import { createImageRemaker } from './media/remake-image.ts';
import { createSafeFetchClient } from './outbound/safe-fetch-client.ts';
import { startHeartbeat } from './upkeep/heartbeat.ts';
import { startPreparing } from './upkeep/prepare-stores.ts';
import { repeat } from './upkeep/repeat.ts';
import { startSweepingFiles } from './upkeep/sweep-files.ts';
import { OrphanSweeper } from './upkeep/sweep-orphans.ts';
import { RouteGate } from './routing/route-gate.ts';
import { UpstreamPool } from './routing/upstream-pool.ts';

export interface WorkerOptions {
  readonly queues: readonly QueueName[];
  /** Requests that run at once, of each queue. */
  readonly concurrency: number;
  /** What whole answers may hold together until they have been sent. */
  readonly responseMemoryBytes?: number;
}

/** Of callers' images, together; those of one request hold 80 MB at most, until they are sent. */
const pictureMemoryBytes = 512_000_000;

/** Of large jobs, from before they are read until they are done. */
const jobMemoryBytes = 512_000_000;

/** Starts everything a worker process does: it takes work, reads the ledger, and tells that it lives. */
export async function startWorker(
  config: Config,
  env: NodeJS.ProcessEnv,
  log: Logger,
  options: WorkerOptions,
): Promise<Running> {
  const workerId = randomUUID();
  const redis = createRedis(config.redisUrl, 'commands', log);
  const payloadRedis = createRedis(config.redisUrl, 'payloads', log);
  const subscriber = createRedis(config.redisUrl, 'subscriber', log);
  await Promise.all([waitUntilReady(redis), waitUntilReady(payloadRedis)]);
  const mongo = openMongo(config.mongodbUrl, log);
  const prices = new PriceStore(mongo.db);
  const catalog = await CatalogStore.open({
    path: config.catalogPath,
    env,
    redis,
    log,
    findPriceDay: await prices.readDays(),
  });
  const upstreams = new UpstreamPool(log);
  catalog.onReload((reloaded) => upstreams.forgetMissing(reloaded));
  const gate = new RouteGate(redis, workerId, log);
  const ledger = new LedgerStore(mongo.db);
  const objects = new ObjectStore(config.s3);
  const accounts = new AccountStore(mongo.db, config);
  const hotAccounts = new HotAccountStore(redis, accounts, ledger);
  const payloads = new PayloadStore(payloadRedis);
  const keptFrames = new KeptFramesStore(redis, payloadRedis);
  const answers = new AnswerStore(keptFrames, objects);
  const mover = new KeptAnswerMover(answers, log);
  const traffic = new TrafficRecorder(new TrafficStore(redis), log);
  const routing = { upstreams, gate };
  const decoders = new Decoders();
  const media = {
    fetchClient: createSafeFetchClient(),
    checkImage: createImageChecker(decoders),
    memory: new FairBudget({ capacity: pictureMemoryBytes }),
  };
  const embeddings = new EmbeddingLines(catalog, {
    routing,
    log,
    media,
    vectorCache: new VectorCacheStore(redis, log),
  });
  const dependencies: JobDependencies = {
    redis,
    ledger,
    hotAccounts,
    traffic,
    prices,
    catalog,
    routing,
    embeddings,
    reasoning: new ReasoningStore(redis, log),
    payloads,
    jobMemory: new FairBudget({ capacity: jobMemoryBytes }),
    answers,
    mover,
    objects,
    media,
    remakeImage: createImageRemaker(decoders),
    responseMemory: createResponseBudget(options.responseMemoryBytes),
    log,
    workerId,
  };

  const runsByQueue = new Map(options.queues.map((queue) => [queue, new ActiveRuns()]));
  const jobRuns = new ActiveRuns();
  const allRuns = [...runsByQueue.values(), jobRuns];
  /** Durable jobs have leases of their own. */
  const listRequests = () => [...runsByQueue.values()].flatMap((runs) => [...runs.requests()]);
  const bans = new BanWatch({
    hotAccounts,
    listAccounts: () => allRuns.flatMap((runs) => Array.from(runs.requests(), ({ accountId }) => accountId)),
    endAccount: (accountId) => {
      for (const runs of allRuns) runs.cancelAccount(accountId, new AccountBanned());
    },
    log,
  });
  const publisher = new ReplyPublisher({
    workerId,
    redis,
    payloads: payloadRedis,
    keptFrames,
    log,
    onDeaf: (channel) => {
      for (const runs of runsByQueue.values()) runs.cancelChannel(channel);
    },
    onKept: (request, size) => mover.frames(request, size),
    onKeptTooMuch: ({ requestId }) => {
      const error = new AppError('too_many_jobs', { message: tooMuchKept });
      for (const runs of allRuns) runs.fail(requestId, error);
    },
  });
  let jobs: DurableJobs | null = null;
  const controlChannel = Buffer.from(redisChannels.control(workerId));
  const jobChannels = options.queues.map((queue) => ({ queue, name: redisChannels.jobsAdded(queue) }));
  subscriber.on('messageBuffer', (channel: Buffer, message: Buffer) => {
    if (!channel.equals(controlChannel)) {
      const added = jobChannels.find(({ name }) => channel.equals(Buffer.from(name)));
      if (added !== undefined) jobs?.wake(added.queue);
      return;
    }
    const control = JSON.parse(message.toString('utf8')) as ControlMessage;
    if (control.action === 'received') publisher.acknowledge(control.channel, control.mark);
    else if (control.action === 'cancel-job') jobs?.cancel(control.jobId);
    else for (const runs of runsByQueue.values()) runs.control(control);
  });
  await subscriber.subscribe(redisChannels.control(workerId), ...jobChannels.map(({ name }) => name));
  await subscribeToInvalidations(subscriber, (change) => {
    runInBackground(bans.handle(change), 'ban look-up', log);
    if (change !== null && change.kind !== 'models') return;
    catalog
      .refreshDisabled()
      .catch((error: unknown) => log.warn({ err: error }, 'the disabled models could not be read'));
  });

  // Known to live before it takes anything: what a dead worker took is dispatched again.
  const heartbeat = await startHeartbeat({
    redis,
    runsByQueue,
    embeddings,
    workerId,
    log,
    concurrency: options.concurrency,
  });
  const blockings: RedisClient[] = [];
  const connectBlocking = async (): Promise<RedisClient> => {
    const blocking = createRedis(config.redisUrl, 'blocking', log);
    blockings.push(blocking);
    await waitUntilReady(blocking);
    return blocking;
  };
  const intakes: Running[] = [];
  for (const [queue, runs] of runsByQueue) {
    const common = { dependencies, publisher, runs, bans };
    for (const bullQueue of queue === 'chat' ? [null] : bullQueues[queue]) {
      const blocking = await connectBlocking();
      const { concurrency } = options;
      intakes.push(
        bullQueue === null
          ? startReadyIntake({ ...common, blocking, concurrency })
          : startQueuedIntake({
              ...common,
              blocking,
              queue: bullQueue,
              concurrency: countQueuedRuns(bullQueue, concurrency),
            }),
      );
    }
  }
  jobs = startDurableJobs({
    dependencies,
    publisher,
    runs: jobRuns,
    ...options,
    secrets: new WebhookSecretStore(mongo.db, config),
    blocking: await connectBlocking(),
  });
  intakes.push(jobs);
  const codes = new RefillCodeStore(mongo.db);
  const preparing = startPreparing(
    {
      accounts: () => accounts.createIndexes(),
      keySecrets: async () => {
        if (await accounts.prepareSecrets()) return;
        log.warn('MASTER_KEY has changed; set the former one to show API keys stored under it');
      },
      codes: () => codes.createIndexes(),
      ledger: () => ledger.createIndexes(),
      bucket: () => objects.prepareBucket(),
    },
    log,
  );
  const leases = new ShardLeases(redis, workerId, redisKeys.ledgerLease);
  const ledgerReader = startLedgerReader({ redis, store: ledger, accounts, hotAccounts, leases, log });
  const reservations = new ReservationStore(redis);
  const sweepLeases = new ShardLeases(redis, workerId, redisKeys.sweepLease);
  const sweeper = new OrphanSweeper(reservations, sweepLeases, log);
  const upkeep = [
    startHolding(reservations, listRequests, log),
    bans,
    repeat(
      { name: 'remember prices', intervalMs: 5_000, run: () => prices.remember(catalog.current.models) },
      log,
    ),
    repeat(
      {
        name: 'finish redeemed codes',
        intervalMs: 5_000,
        run: () => finishClaims({ redis, hotAccounts, codes, ledger, log }),
      },
      log,
    ),
    repeat(
      {
        name: 'look for dead api processes',
        intervalMs: 1_000,
        run: () =>
          publisher.probe(new Set([...runsByQueue.values()].flatMap((runs) => [...runs.channels()]))),
      },
      log,
    ),
    repeat({ name: 'sweep orphans', intervalMs: holdIntervalMs, run: () => sweeper.sweep() }, log),
    startSweepingFiles({ redis, workerId, objects, log }),
  ];
  log.info({ workerId, queues: options.queues, concurrency: options.concurrency }, 'worker ready');

  return {
    async stop() {
      await Promise.all(intakes.map((intake) => intake.stop()));
      await heartbeat.stop();
      await preparing.stop();
      await Promise.all(upkeep.map((chore) => chore.stop()));
      await ledgerReader.stop();
      await mover.stop();
      await traffic.stop();
      catalog.close();
      await gate.stop();
      await upstreams.close();
      objects.close();
      await mongo.close();
      for (const client of [subscriber, payloadRedis, redis, ...blockings]) client.disconnect();
    },
    async handBack() {
      // Jobs that were cancelled take a moment to be settled, which the others do not wait for.
      const handedBack = jobs.handBack();
      await gate.handBack();
      // From then on its chats are dispatched again.
      await heartbeat.stop();
      await handedBack;
    },
  };
}
