import { setMaxListeners } from 'node:events';
import { within } from '../../shared/platform/runtime/within.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { isTemporaryFailure, type Faults } from '../reporting/faults.ts';
import { maxDeadLetters } from '../../shared/ledger/dead-letters-store.ts';
import { LedgerConflict } from '../../shared/ledger/ledger-conflict.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { peekShards, type ShardState } from './peek-shards.ts';
import type { RestoreDeps } from './restore-lost-entries.ts';
import { batchSize, ShardLedger, TooManyDeadLetters } from './shard-ledger.ts';
import type { ShardLeases } from './shard-leases.ts';

/** Under low load, a settled request reaches MongoDB within this time. After a full batch there is no pause. */
const idlePollMs = 200;
const failurePauseMs = 1_000;
/** Far longer than a batch takes. A driver command that hangs must not stop a shard's ledger. */
const batchTimeoutMs = 60_000;

export interface LedgerReaderDeps extends RestoreDeps {
  readonly leases: ShardLeases;
  readonly faults: Faults;
}

/**
 * Moves the ledger entries of every shard from its Redis stream to MongoDB, with one reader per shard, which holds the
 * shard's lease. The lease only avoids duplicate work. `applyEntries` ensures that no entry is applied twice: its
 * writes are conditional on what was applied before.
 */
export function startLedgerReader(dependencies: LedgerReaderDeps): Running {
  const stopping = new AbortController();
  // The pause of each shard listens to the signal. Without this, Node would report the listeners as a leak.
  setMaxListeners(shardCount + 1, stopping.signal);
  const failures = new ShardFailures(dependencies.log, dependencies.faults);
  const ticks = new Ticks(dependencies.redis, stopping.signal);
  const loops = Array.from({ length: shardCount }, (_, shard) =>
    readShard(dependencies, shard, { failures, ticks, signal: stopping.signal }),
  );
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

/**
 * Ends the pauses of all shards together and looks at all their streams at once, so that an idle worker wakes up five
 * times a second instead of eighty, and reads no stream that has nothing to move.
 */
class Ticks {
  readonly #redis: RedisClient;
  readonly #signal: AbortSignal;
  #next: Promise<readonly ShardState[] | null> | null = null;

  constructor(redis: RedisClient, signal: AbortSignal) {
    this.#redis = redis;
    this.#signal = signal;
  }

  /** @returns the state of each shard, or null if it is unknown */
  async next(): Promise<readonly ShardState[] | null> {
    this.#next ??= this.#pauseAndPeek().finally(() => {
      this.#next = null;
    });
    return await this.#next;
  }

  async #pauseAndPeek(): Promise<readonly ShardState[] | null> {
    await pause(idlePollMs, this.#signal);
    if (this.#signal.aborted) return null;
    return await peekShards(this.#redis).catch(() => null);
  }
}

const part = 'moving the ledger to MongoDB';

/** Logs the start and end of an outage, or of any other failure, once for all shards that it stops. */
class ShardFailures {
  readonly #log: Logger;
  readonly #faults: Faults;
  readonly #shardsInOutage = new Set<number>();
  readonly #failingShards = new Set<number>();

  constructor(log: Logger, faults: Faults) {
    this.#log = log;
    this.#faults = faults;
  }

  record(shard: number, error: unknown): void {
    if (error instanceof TooManyDeadLetters) {
      this.#faults.fail(
        readingPartOf(shard),
        `${error.message} than the ${maxDeadLetters} that are stored. If a later release writes such entries, run workers of ` +
          'that release. Otherwise read them with "admin ledger dead", and delete them with "admin ledger discard"',
      );
      return;
    }
    if (!isTemporaryFailure(error)) {
      this.#failingShards.add(shard);
      this.#faults.note(part, error);
      return;
    }
    if (this.#shardsInOutage.size === 0) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.warn({ reason }, 'ledger paused: Redis or MongoDB does not respond');
    }
    this.#shardsInOutage.add(shard);
  }

  /** Call this when a batch has been moved to MongoDB. */
  clear(shard: number): void {
    this.#endWait(shard);
    if (this.#failingShards.delete(shard) && this.#failingShards.size === 0) this.#faults.clear(part);
    this.#faults.clear(readingPartOf(shard));
  }

  /** Call this when another worker holds the lease of the shard. */
  drop(shard: number): void {
    this.#endWait(shard);
    if (this.#failingShards.delete(shard) && this.#failingShards.size === 0) this.#faults.forget(part);
    this.#faults.forget(readingPartOf(shard));
  }

  #endWait(shard: number): void {
    if (this.#shardsInOutage.delete(shard) && this.#shardsInOutage.size === 0)
      this.#log.info('ledger resumed');
  }
}

const readingPartOf = (shard: number): string => `reading the ledger of shard ${shard}`;

/** Shared by the readers of all shards. */
interface ReaderContext {
  readonly failures: ShardFailures;
  readonly ticks: Ticks;
  readonly signal: AbortSignal;
}

async function readShard(
  dependencies: LedgerReaderDeps,
  shard: number,
  { failures, ticks, signal }: ReaderContext,
): Promise<void> {
  const { log, leases } = dependencies;
  let ledger = new ShardLedger(dependencies, shard);
  let state: ShardState | null = null;
  while (!signal.aborted) {
    try {
      if (await leases.take(shard)) {
        const isIdle = state !== null && !ledger.hasWork(state);
        const moved = isIdle ? 0 : await within(batchTimeoutMs, ledger.moveBatch(), throwTimeout);
        state = null;
        failures.clear(shard);
        if (moved === batchSize) continue;
      } else {
        ledger = new ShardLedger(dependencies, shard);
        failures.drop(shard);
      }
    } catch (error) {
      // A batch that hangs may still complete. The new instance does not share state with it.
      ledger = new ShardLedger(dependencies, shard);
      if (error instanceof LedgerConflict) {
        leases.doubt(shard);
        continue;
      }
      // Entries stay in the stream until MongoDB accepts them; admission stops at the stream's limit. Perhaps only
      // this worker cannot reach MongoDB, so release the shard for another one.
      failures.record(shard, error);
      await releaseLease(leases, shard, log);
      await pause(failurePauseMs, signal);
      continue;
    }
    state = (await ticks.next())?.[shard] ?? null;
  }
  try {
    if (await leases.take(shard)) await ledger.moveBatch();
  } catch (error) {
    log.debug({ shard, err: error }, 'moving the last batch failed; the next reader continues');
  }
  await releaseLease(leases, shard, log);
}

async function releaseLease(leases: ShardLeases, shard: number, log: Logger): Promise<void> {
  try {
    await leases.release(shard);
  } catch (error) {
    log.debug({ shard, err: error }, 'releasing the lease of a shard failed; it expires');
  }
}

/** Stops waiting for a batch that hangs. It is safe to move it again. */
function throwTimeout(): never {
  throw new Error(`a batch was not moved within ${batchTimeoutMs} ms`);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done, { once: true });
  });
}
