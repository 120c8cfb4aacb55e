import type { LedgerReading } from '../../../shared/operator/ledger-lag.ts';
import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';

/** A key that its upstream refuses. */
export interface RefusedKey {
  readonly upstream: string;
  /** Identifies the key where the key itself must not appear. */
  readonly fingerprint: string;
  readonly reason: string;
  /** How many keys of the upstream are not refused, of how many. */
  readonly usableKeys: number;
  readonly keys: number;
  /** Models that have no other key or route: all their candidates are refused. */
  readonly deadModels: readonly string[];
}

/** What a process reads about the stores and the workers. Null: it could not be read. */
export interface SystemReading {
  readonly isRedisUp: boolean;
  readonly isMongoUp: boolean;
  readonly isStorageUp: boolean;
  readonly memory: MemoryReading | null;
  readonly queues: ReadonlyMap<QueueName, QueueReading> | null;
  readonly ledger: LedgerReading | null;
  readonly refusedKeys: readonly RefusedKey[] | null;
}

/** Of the Redis server that is worst off. */
export interface MemoryReading {
  /** The part of its memory that is in use, from 0 to 1; null if it has no limit. */
  readonly usedShare: number | null;
  /** How much that is, of how much; null if it has no limit. */
  readonly used: { readonly usedBytes: number; readonly maxBytes: number } | null;
  /** Whether it has refused commands since the last reading. */
  readonly isRefusing: boolean;
  /** The policy by which it deletes keys; null if it deletes none. */
  readonly evictionPolicy: string | null;
}

export interface QueueReading {
  /** Whether a live worker takes work off the queue. */
  readonly isServed: boolean;
  /** How many parts of its workers have failures that last until somebody fixes them. */
  readonly faults: number;
}
