import type { CatalogStore } from '../../../shared/catalog/catalog-store.ts';
import { readLedgerLag } from '../../../shared/operator/ledger-lag.ts';
import { isEvicting } from '../../../shared/platform/redis/eviction-policy.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { readRedisMemory } from '../../../shared/platform/redis/redis-memory.ts';
import { within } from '../../../shared/platform/runtime/within.ts';
import type { MongoConnection } from '../../../shared/platform/storage/mongo-client.ts';
import type { ObjectStore } from '../../../shared/platform/storage/object-store.ts';
import { queueNames } from '../../../shared/work/queue/job-kinds.ts';
import type { WorkerRegistryStore } from '../../../shared/work/queue/worker-registry-store.ts';
import { RecentReading } from '../recent-reading.ts';
import { readRefusedKeys } from './read-refused-keys.ts';
import type { MemoryReading, SystemReading } from './system-reading.ts';

/** A check that takes longer has failed. */
const checkTimeoutMs = 2_000;

export interface SystemReaderDeps {
  readonly redis: RedisClient;
  readonly mongo: MongoConnection;
  readonly objects: ObjectStore;
  readonly catalog: CatalogStore;
  readonly workers: WorkerRegistryStore;
}

/**
 * Reads the state of the stores and the workers, for health checks and for conditions. Everything in Redis takes one
 * round trip. Never throws: what cannot be read is null.
 */
export class SystemReader {
  readonly #dependencies: SystemReaderDeps;
  readonly #recent = new RecentReading('reading the state of the stores', () => this.#read());
  /** Commands that Redis had refused for lack of memory at the last reading. */
  #refusedCommands: number | null = null;

  constructor(dependencies: SystemReaderDeps) {
    this.#dependencies = dependencies;
  }

  /** Returns a reading that is at most a second old. Concurrent callers share one. */
  async read(): Promise<SystemReading> {
    return await this.#recent.get();
  }

  async #read(): Promise<SystemReading> {
    const { redis, mongo, objects, catalog, workers } = this.#dependencies;
    const nowMs = redis.time().then(([seconds]) => Number(seconds) * 1_000);
    const [ping, memory, queues, ledger, refusedKeys, mongoPing, bucket] = await Promise.all([
      attempt(() => redis.ping()),
      attempt(() => readRedisMemory(redis)),
      attempt(() => workers.findWorkers(queueNames)),
      attempt(() => readLedgerLag(redis, nowMs)),
      attempt(() => readRefusedKeys(redis, catalog.current, nowMs)),
      attempt(() => mongo.db.command({ ping: 1 })),
      attempt(async (signal) => {
        await objects.check(signal);
        return true;
      }),
    ]);
    return {
      isRedisUp: ping !== null,
      isMongoUp: mongoPing !== null,
      isStorageUp: bucket !== null,
      memory: memory === null ? null : this.#toMemoryReading(memory),
      queues:
        queues === null
          ? null
          : new Map(
              queues.map(({ servedAgoMs, faults }, i) => [
                queueNames[i]!,
                { isServed: servedAgoMs !== null, faults },
              ]),
            ),
      ledger,
      refusedKeys,
    };
  }

  #toMemoryReading(servers: Awaited<ReturnType<typeof readRedisMemory>>): MemoryReading {
    const shareOf = (one: { readonly usedBytes: number; readonly maxBytes: number }): number =>
      one.usedBytes / one.maxBytes;
    const [fullest = null] = servers
      .flatMap(({ usedBytes, maxBytes }) =>
        usedBytes === null || maxBytes === null ? [] : [{ usedBytes, maxBytes }],
      )
      .toSorted((a, b) => shareOf(b) - shareOf(a));
    const refused = servers.reduce((sum, { refusedCommands }) => sum + refusedCommands, 0);
    const isRefusing = this.#refusedCommands !== null && refused > this.#refusedCommands;
    this.#refusedCommands = refused;
    return {
      usedShare: fullest === null ? null : shareOf(fullest),
      used: fullest,
      isRefusing,
      evictionPolicy: servers.map(({ policy }) => policy).find(isEvicting) ?? null,
    };
  }
}

/** Returns null if the check fails or takes too long. */
async function attempt<T>(check: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
  try {
    // Not every check supports cancellation.
    return await within(checkTimeoutMs, check(AbortSignal.timeout(checkTimeoutMs)), () => null);
  } catch {
    // The failure is logged where it occurs; the reader only needs to know that there is none.
    return null;
  }
}
