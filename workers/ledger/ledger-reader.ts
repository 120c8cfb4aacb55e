import { setMaxListeners } from 'node:events';
import { within } from '../../shared/runtime/within.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { passesByItself, type Faults } from '../../shared/storage/faults.ts';
import { maxDeadLetters } from '../../shared/ledger/dead-letters.ts';
import { LedgerConflict } from '../../shared/ledger/ledger-store.ts';
import { shardCount } from '../../shared/redis/redis-keys.ts';
import type { RestoreForgottenDeps } from './restore-forgotten.ts';
import { batchSize, ShardLedger, TooManyDeadLetters } from './shard-ledger.ts';
import type { ShardLeases } from '../leases/shard-leases.ts';

/** How soon a settled request is in MongoDB under low load. After a full batch the next one follows at once. */
const idlePollMs = 200;
const failurePauseMs = 1_000;
/** Far above what a batch takes. A driver command that never ends must not stop a shard's ledger. */
const patienceMs = 60_000;

export interface LedgerReaderDeps extends RestoreForgottenDeps {
  readonly leases: ShardLeases;
  readonly faults: Faults;
}

/**
 * Moves every shard's stream into MongoDB, with one reader per shard, which holds the shard's lease. The lease
 * only saves duplicate work. applyEntries ensures that nothing counts twice, because its writes are conditional
 * on what was applied before.
 */
export function startLedgerReader(dependencies: LedgerReaderDeps): Running {
  const stopping = new AbortController();
  // One pause per shard listens to it; Node would report that many listeners as a leak.
  setMaxListeners(shardCount + 1, stopping.signal);
  const stops = new Stops(dependencies.log, dependencies.faults);
  const loops = Array.from({ length: shardCount }, (_, shard) =>
    readShard(dependencies, shard, stops, stopping.signal),
  );
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

const part = 'moving the ledger to MongoDB';

/** Logs an outage once, however many shards it stops, and its end; and so with any other failure. */
class Stops {
  readonly #log: Logger;
  readonly #faults: Faults;
  readonly #waiting = new Set<number>();
  readonly #failing = new Set<number>();

  constructor(log: Logger, faults: Faults) {
    this.#log = log;
    this.#faults = faults;
  }

  begin(shard: number, error: unknown): void {
    if (error instanceof TooManyDeadLetters) {
      this.#faults.fail(
        readingOf(shard),
        `${error.message} than the ${maxDeadLetters} that are kept. If a later release writes such entries, run workers of ` +
          'that release. Otherwise read them with "admin ledger dead", and delete them with "admin ledger discard"',
      );
      return;
    }
    if (!passesByItself(error)) {
      this.#failing.add(shard);
      this.#faults.note(part, error);
      return;
    }
    if (this.#waiting.size === 0) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.warn({ reason }, 'the ledger waits: Redis or MongoDB does not answer');
    }
    this.#waiting.add(shard);
  }

  /** A batch was moved. */
  end(shard: number): void {
    this.#endWait(shard);
    if (this.#failing.delete(shard) && this.#failing.size === 0) this.#faults.clear(part);
    this.#faults.clear(readingOf(shard));
  }

  /** Another worker has the shard now. */
  leave(shard: number): void {
    this.#endWait(shard);
    if (this.#failing.delete(shard) && this.#failing.size === 0) this.#faults.forget(part);
    this.#faults.forget(readingOf(shard));
  }

  #endWait(shard: number): void {
    if (this.#waiting.delete(shard) && this.#waiting.size === 0) this.#log.info('the ledger continues');
  }
}

const readingOf = (shard: number): string => `reading the ledger of shard ${shard}`;

async function readShard(
  dependencies: LedgerReaderDeps,
  shard: number,
  stops: Stops,
  signal: AbortSignal,
): Promise<void> {
  const { log, leases } = dependencies;
  let ledger = new ShardLedger(dependencies, shard);
  while (!signal.aborted) {
    let pauseMs = idlePollMs;
    try {
      if (await leases.take(shard)) {
        if ((await within(patienceMs, ledger.moveBatch(), failLate)) === batchSize) pauseMs = 0;
        stops.end(shard);
      } else {
        ledger = new ShardLedger(dependencies, shard);
        stops.leave(shard);
      }
    } catch (error) {
      // A batch that hangs may still go on. The new instance shares no state with it.
      ledger = new ShardLedger(dependencies, shard);
      if (error instanceof LedgerConflict) continue;
      // The stream keeps what MongoDB cannot accept; admission stops at the stream's limit. Perhaps only this
      // worker cannot reach MongoDB, so another one may take the shard meanwhile.
      stops.begin(shard, error);
      await giveUp(leases, shard, log);
      pauseMs = failurePauseMs;
    }
    if (pauseMs > 0) await pause(pauseMs, signal);
  }
  try {
    if (await leases.take(shard)) await ledger.moveBatch();
  } catch (error) {
    log.debug({ shard, err: error }, 'the rest of the stream is left to the next reader');
  }
  await giveUp(leases, shard, log);
}

async function giveUp(leases: ShardLeases, shard: number, log: Logger): Promise<void> {
  try {
    await leases.release(shard);
  } catch (error) {
    log.debug({ shard, err: error }, 'the lease of a shard could not be released; it expires');
  }
}

/** Abandons a batch that hangs. Moving it again changes nothing. */
function failLate(): never {
  throw new Error(`a batch was not moved within ${patienceMs} ms`);
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
