import { randomUUID } from 'node:crypto';
import type { CatalogStore } from '../../../shared/catalog/catalog-store.ts';
import type { Config } from '../../../shared/platform/config/config.ts';
import type { ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import type { Running } from '../../../shared/platform/runtime/lifecycle.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import { listQueuesInUse } from '../../../shared/work/queue/queues-in-use.ts';
import type { ConditionBoard } from '../conditions/condition-board.ts';
import { ConditionWatcher } from '../conditions/condition-watcher.ts';
import { showReading } from '../conditions/show-reading.ts';
import type { SystemReader } from '../conditions/system-reader.ts';
import { AlertSender } from './alert-sender.ts';
import { AlertStore } from './alert-store.ts';
import { createTargets } from './alert-targets.ts';

export interface WatchDeps {
  readonly config: Config;
  readonly redis: RedisClient;
  readonly catalog: CatalogStore;
  readonly system: SystemReader;
  readonly metrics: ProcessMetrics;
  readonly log: Logger;
}

/** Watches the conditions of the gateway, and sends alerts if the operator has set a target for them. */
export function watchConditions(
  { config, redis, catalog, system, metrics, log }: WatchDeps,
  board: ConditionBoard,
  { conditionIntervalMs: intervalMs }: { readonly conditionIntervalMs: number },
): Running {
  const targets = createTargets(config, log);
  const sender =
    targets.length === 0
      ? null
      : new AlertSender({ store: new AlertStore(redis, randomUUID()), targets, log });
  const watcher = new ConditionWatcher({
    board,
    read: () => system.read(),
    queuesInUse: () => listQueuesInUse(catalog),
    log,
    intervalMs,
    onLook: (conditions) => {
      if (sender !== null) runInBackground(sender.update(conditions), 'sending alerts', log);
    },
  });
  showReading(metrics, () => watcher.last);
  return {
    async stop() {
      watcher.stop();
      await sender?.stop();
    },
  };
}
