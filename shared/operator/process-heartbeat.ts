import { randomUUID } from 'node:crypto';
import { liveness } from '../platform/redis/liveness.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import type { Running } from '../platform/runtime/lifecycle.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { fullVersion } from '../platform/runtime/product-version.ts';
import { runInBackground } from '../platform/runtime/run-in-background.ts';
import { WorkerRegistryStore, type ProcessRole } from '../work/queue/worker-registry-store.ts';

/** Reports that a process runs, and which build, for as long as it does. */
export function startProcessHeartbeat(redis: RedisClient, role: ProcessRole, log: Logger): Running {
  const registry = new WorkerRegistryStore(redis);
  const id = randomUUID();
  const process = { build: fullVersion, startedAtMs: Date.now() };
  const attempt = (work: Promise<void>): Promise<void> =>
    work.catch((error: unknown) => log.debug({ err: error }, 'reporting a process failed'));
  const beat = (): void =>
    runInBackground(attempt(registry.beatProcess(role, id, process)), 'reporting a process', log);
  beat();
  const timer = setInterval(beat, liveness.worker.reportMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await attempt(registry.leaveProcess(role, id));
    },
  };
}
