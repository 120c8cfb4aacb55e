import type { Health } from '../../../shared/contract/system.ts';
import { productVersion } from '../../../shared/platform/runtime/product-version.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import { isLedgerBehind } from '../../../shared/operator/ledger-lag.ts';
import { isMemoryFull } from './find-problems.ts';
import type { QueueReading, SystemReading } from './system-reading.ts';

export interface HealthOptions {
  /** Queues for which requests can be admitted. */
  readonly queuesInUse: ReadonlySet<QueueName>;
  /** Whether a queue without a worker is a problem. */
  readonly expectsWorkers: boolean;
}

/** Describes a reading to callers. It names no vendor, model or key. Pure. */
export function describeHealth(
  { isRedisUp, isMongoUp, isStorageUp, memory, queues, ledger, refusedKeys }: SystemReading,
  { queuesInUse, expectsWorkers }: HealthOptions,
): {
  readonly health: Health;
  /** Whether requests for all models of the catalog are accepted and worked on now. */
  readonly isServing: boolean;
} {
  const all: readonly (readonly [QueueName, QueueReading])[] = queues === null ? [] : [...queues];
  const isServed = queues !== null && all.every(([, queue]) => queue.isServed);
  const isWorking = queues !== null && all.every(([, { faults }]) => faults === 0);
  const isUsedServed =
    queues !== null && all.every(([name, queue]) => queue.isServed || !queuesInUse.has(name));
  const hasLiveModels =
    refusedKeys === null || refusedKeys.every(({ deadModels }) => deadModels.length === 0);
  const checks = {
    redis: isRedisUp,
    mongodb: isMongoUp,
    s3: isStorageUp,
    workers: isServed && isWorking,
    ledger: ledger !== null && !isLedgerBehind(ledger),
    // Some servers do not tell how much memory they have.
    redis_memory: isRedisUp && (memory === null || !(isMemoryFull(memory) || memory.evictionPolicy !== null)),
    upstreams: refusedKeys !== null && refusedKeys.length === 0,
  };
  // Workers that are started when there is work are not missing.
  const isOk = Object.entries({ ...checks, workers: isWorking && (isServed || !expectsWorkers) }).every(
    ([, ok]) => ok,
  );
  return {
    health: {
      // Without Redis no request is admitted. Without any of the others, some operations still work.
      status: !isRedisUp ? 'down' : isOk ? 'ok' : 'degraded',
      version: productVersion,
      checks: mapChecks(checks),
    },
    isServing: isRedisUp && isUsedServed && hasLiveModels,
  };
}

function mapChecks<Name extends string>(
  checks: Readonly<Record<Name, boolean>>,
): Record<Name, 'ok' | 'down'> {
  const entries = Object.entries<boolean>(checks).map(([name, isOk]) => [name, isOk ? 'ok' : 'down']);
  return Object.fromEntries(entries) as Record<Name, 'ok' | 'down'>;
}
