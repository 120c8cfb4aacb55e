import { FairBudget } from '../shared/fairness/fair-budget.ts';
import { PayloadStore } from '../shared/queue/payload-store.ts';
import { ReasoningStore } from '../shared/reasoning/reasoning-store.ts';
import { AnswerStore } from '../shared/reply/answer-store.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { TrafficRecorder } from '../shared/traffic/traffic-recorder.ts';
import { TrafficStore } from '../shared/traffic/traffic-store.ts';
import { EmbeddingLines } from './embeddings/embedding-lines.ts';
import { VectorCacheStore } from './embeddings/vector-cache-store.ts';
import type { JobDependencies } from './jobs/job-context.ts';
import { KeptAnswerMover } from './jobs/kept-answer-mover.ts';
import { createResponseBudget } from './jobs/response-memory.ts';
import { createImageChecker } from './media/check-image.ts';
import { Decoders } from './media/decoders.ts';
import { createImageRemaker } from './media/remake-image.ts';
import { createSafeFetchClient } from './outbound/safe-fetch-client.ts';
import { RouteGate } from './routing/route-gate.ts';
import { UpstreamPool } from './routing/upstream-pool.ts';
import type { WorkerStores } from './worker-stores.ts';

/** Of callers' images, together; `media-memory.ts` bounds those of one request. */
const pictureMemoryBytes = 512_000_000;

/** Of large jobs, from before they are read until they are done. */
const jobMemoryBytes = 512_000_000;

export interface RunningDependencies extends JobDependencies {
  /** Call when no job runs any more, and before the stores are closed. */
  readonly stop: () => Promise<void>;
  /** The process is about to end: its waiting calls are left to other workers. */
  readonly handBackCalls: () => Promise<void>;
}

/** What a process has one of, for all the jobs that it runs. */
export function createJobDependencies(
  { redis, payloadRedis, catalog, ledger, hotAccounts, prices, objects, keptFrames }: WorkerStores,
  workerId: string,
  responseMemoryBytes: number | undefined,
  log: Logger,
): RunningDependencies {
  const upstreams = new UpstreamPool(log);
  catalog.onReload((reloaded) => upstreams.forgetMissing(reloaded));
  const gate = new RouteGate(redis, workerId, log);
  const routing = { upstreams, gate };
  const answers = new AnswerStore(keptFrames, objects);
  const mover = new KeptAnswerMover(answers, log);
  const traffic = new TrafficRecorder(new TrafficStore(redis), log);
  const decoders = new Decoders();
  const media = {
    fetchClient: createSafeFetchClient(),
    checkImage: createImageChecker(decoders),
    memory: new FairBudget({ capacity: pictureMemoryBytes }),
  };
  const vectorCache = new VectorCacheStore(redis, log);
  return {
    redis,
    ledger,
    hotAccounts,
    traffic,
    prices,
    catalog,
    routing,
    embeddings: new EmbeddingLines(catalog, { routing, log, media, vectorCache }),
    reasoning: new ReasoningStore(redis, log),
    payloads: new PayloadStore(payloadRedis),
    jobMemory: new FairBudget({ capacity: jobMemoryBytes }),
    answers,
    mover,
    objects,
    media,
    remakeImage: createImageRemaker(decoders),
    responseMemory: createResponseBudget(responseMemoryBytes),
    log,
    workerId,
    handBackCalls: () => gate.handBack(),
    async stop() {
      await mover.stop();
      await traffic.stop();
      catalog.close();
      await gate.stop();
      await upstreams.close();
    },
  };
}
