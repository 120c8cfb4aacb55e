import { countBulkRuns, countRuns } from '../../shared/work/queue/fair-share.ts';
import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import { WorkerRegistryStore } from '../../shared/work/queue/worker-registry-store.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { fullVersion } from '../../shared/platform/runtime/product-version.ts';
import type { HeldWork } from '../../shared/work/queue/held-work.ts';
import type { EndedWork } from '../reporting/ended-work.ts';
import type { Faults } from '../reporting/faults.ts';
import type { EmbeddingSchedulers } from '../embeddings/embedding-schedulers.ts';
import type { ActiveRuns } from '../intake/active-runs.ts';
import type { TakingWatch } from '../intake/taking-watch.ts';
import { HealthFile } from './health-file.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

interface HeartbeatOptions {
  readonly redis: RedisClient;
  readonly runsByQueue: ReadonlyMap<QueueName, ActiveRuns>;
  readonly taking: Pick<TakingWatch, 'isTaking'>;
  readonly concurrency: number;
  readonly embeddings: Pick<EmbeddingSchedulers, 'waiting'>;
  readonly faults: Pick<Faults, 'count'>;
  readonly endedWork: Pick<EndedWork, 'perMinute'>;
  /** Counts what this worker has taken. */
  readonly countHeld: () => ReadonlyMap<QueueName, HeldWork>;
  readonly workerId: string;
  /** Touched after each heartbeat that Redis accepts, for health checks on this machine. */
  readonly healthFile?: string;
  readonly log: Logger;
}

/**
 * Regularly registers this worker as alive, with its load. Stopping removes it from the registry.
 * @throws ConfigError if the health file cannot be written
 */
export async function startHeartbeat(options: HeartbeatOptions): Promise<Running> {
  const { redis, runsByQueue, taking, concurrency, embeddings, faults, workerId, healthFile, log } = options;
  const { endedWork, countHeld } = options;
  const health = healthFile === undefined ? null : await HealthFile.create(healthFile, log);
  const registry = new WorkerRegistryStore(redis);
  const beat = async (): Promise<void> => {
    try {
      const held = countHeld();
      await Promise.all(
        [...runsByQueue].map(([queue, runs]) => {
          const waitingInputs = queue === 'embedding' ? embeddings.waiting : 0;
          const bulkRuns = countBulkRuns(queue, concurrency);
          return registry.beat(queue, workerId, {
            active: runs.size,
            waitingInputs,
            bulkRuns,
            faults: faults.count,
            isTaking: taking.isTaking(queue),
            concurrency: countRuns(queue, concurrency),
            endedPerMinute: endedWork.perMinute(queue),
            version: fullVersion,
            held: held.get(queue) ?? new Map(),
          });
        }),
      );
      await health?.touch();
    } catch (error) {
      log.debug({ err: error }, 'heartbeat failed');
    }
  };
  await beat();
  const timer = setInterval(
    () => runInBackground(beat(), 'sending a heartbeat', log),
    liveness.worker.reportMs,
  );
  return {
    async stop() {
      clearInterval(timer);
      await health?.remove();
      try {
        await Promise.all([...runsByQueue.keys()].map((queue) => registry.leave(queue, workerId)));
      } catch (error) {
        log.debug({ err: error }, 'removing the worker from the registry failed; its entry expires');
      }
    },
  };
}
