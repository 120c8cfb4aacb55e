import { watchBudgets } from '../shared/operator/watch-budgets.ts';
import { FairBudget } from '../shared/fairness/fair-budget.ts';
import { queueOfModel, type QueueName } from '../shared/work/queue/job-kinds.ts';
import { ReasoningStore } from '../shared/work/reasoning-store.ts';
import { ResponseStore } from '../shared/work/replies/response-store.ts';
import type { Logger } from '../shared/platform/runtime/logger.ts';
import type { Stores } from '../shared/stores/open-stores.ts';
import type { Tracing } from '../shared/platform/tracing/tracing.ts';
import type { ProcessMetrics } from '../shared/platform/metrics/process-metrics.ts';
import { UsageMetrics } from '../shared/ledger/usage-metrics.ts';
import { CallMetrics } from './routing/call-metrics.ts';
import { CallTally } from './routing/call-tally.ts';
import type { Routing } from './routing/call-route.ts';
import { EndedWork } from './reporting/ended-work.ts';
import type { Faults } from './reporting/faults.ts';
import { RequestStatsRecorder } from '../shared/ledger/request-stats-recorder.ts';
import { RequestStatsStore } from '../shared/ledger/request-stats-store.ts';
import { TrafficStore } from '../shared/ledger/traffic-store.ts';
import { EmbeddingSchedulers } from './embeddings/embedding-schedulers.ts';
import { VectorCacheStore } from './embeddings/vector-cache-store.ts';
import type { JobDeps } from './runs/job-context.ts';
import { RunMetrics } from './runs/run-metrics.ts';
import { StoredResponseMover } from './runs/stored-response-mover.ts';
import { createResponseBudget } from './runs/generation-memory.ts';
import { createImageChecker } from './media/check-image.ts';
import { Decoders } from './media/decoders.ts';
import { createImageReencoder } from './media/reencode-image.ts';
import { listSlotSets } from '../shared/routing/candidate-keys.ts';
import { createSafeFetchClient } from './outbound/safe-fetch-client.ts';
import { RouteLimiter } from './routing/route-limiter.ts';
import { UpstreamPool } from './routing/upstream-pool.ts';

/** For callers' images in total; `media-memory.ts` sets the limit per request. */
const imageMemoryBytes = 512_000_000;

/** For large jobs in total. Reserved before a job is read and released when it is done. */
const jobMemoryBytes = 512_000_000;

export interface RunningDeps extends JobDeps {
  readonly endedWork: EndedWork;
  readonly tally: CallTally;
  /** Call this once no job is running, before the stores are closed. */
  readonly stop: () => Promise<void>;
  /** Releases the call slots of a process that is about to exit. Other workers run its waiting calls. */
  readonly handBackCalls: () => Promise<void>;
}

export interface JobDepsOptions {
  /** Memory limit for all complete responses that have not been sent yet, in bytes. */
  readonly responseMemoryBytes?: number;
  /** How often the process writes what operators see of requests (ms). */
  readonly trafficIntervalMs?: number;
}

/** Creates the dependencies that all jobs of a process share. */
export function createJobDeps(
  { redis, payloads, catalog, ledger, hotAccounts, prices, objects, storedFrames }: Stores,
  workerId: string,
  { responseMemoryBytes, trafficIntervalMs }: JobDepsOptions,
  faults: Faults,
  metrics: ProcessMetrics,
  tracing: Tracing | null,
  log: Logger,
): RunningDeps {
  const upstreams = new UpstreamPool(log);
  catalog.onReload((reloaded) => upstreams.closeRemoved(reloaded));
  const limiter = new RouteLimiter(redis, workerId, log, {
    slotSets: () => listSlotSets(catalog.current.models.flatMap(({ routes }) => routes)),
  });
  const callMetrics = new CallMetrics(metrics);
  const queueOf = (id: string): QueueName | null => {
    const model = catalog.find(id);
    return model === undefined ? null : queueOfModel(model.type);
  };
  const tally = new CallTally();
  const routing: Routing = {
    upstreams,
    limiter,
    tally,
    onCallEnded: (call) => callMetrics.note(call),
    tracing,
    isDrained: (id, route) => catalog.isDrained({ id }, route),
  };
  const responses = new ResponseStore(storedFrames, objects);
  const mover = new StoredResponseMover(responses, log);
  const requestStats = new RequestStatsRecorder({
    stats: new RequestStatsStore(redis),
    traffic: new TrafficStore(redis),
    log,
    trafficIntervalMs,
  });
  const decoders = new Decoders(log);
  const media = {
    fetchClient: createSafeFetchClient(),
    checkImage: createImageChecker(decoders),
    memory: new FairBudget({ capacity: imageMemoryBytes }),
  };
  const jobMemory = new FairBudget({ capacity: jobMemoryBytes });
  const responseMemory = createResponseBudget(responseMemoryBytes);
  watchBudgets(metrics, { images: media.memory, jobs: jobMemory, responses: responseMemory });
  const vectorCache = new VectorCacheStore(redis, log);
  return {
    redis,
    ledger,
    hotAccounts,
    requestStats,
    usageMetrics: new UsageMetrics(metrics),
    runMetrics: new RunMetrics(metrics, queueOf),
    endedWork: new EndedWork(queueOf),
    tally,
    prices,
    catalog,
    routing,
    embeddings: new EmbeddingSchedulers(catalog, { routing, log, media, vectorCache }),
    reasoning: new ReasoningStore(redis, log),
    payloads,
    jobMemory,
    responses,
    mover,
    objects,
    media,
    reencodeImage: createImageReencoder(decoders),
    responseMemory,
    faults,
    tracing,
    log,
    workerId,
    handBackCalls: () => limiter.handBack(),
    async stop() {
      await mover.stop();
      await requestStats.stop();
      catalog.close();
      await limiter.stop();
      await upstreams.close();
      await decoders.close();
    },
  };
}
