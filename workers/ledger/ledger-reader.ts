import { setMaxListeners } from 'node:events';
import { within } from '../../shared/runtime/within.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { LedgerConflict } from '../../shared/ledger/ledger-store.ts';
import { shardCount } from '../../shared/redis/redis-keys.ts';
import type { RestoreForgottenDependencies } from './restore-forgotten.ts';
import { batchSize, ShardLedger } from './shard-ledger.ts';
import type { ShardLeases } from './shard-leases.ts';

/** How soon a settled request is in MongoDB while little happens; a full batch is followed by the next at once. */
const idlePollMs = 200;
const failurePauseMs = 1_000;
/** Far above what a batch takes: a driver's command that never ends must not end a shard's ledger. */
const patienceMs = 60_000;

export interface LedgerReaderDependencies extends RestoreForgottenDependencies {
  readonly leases: ShardLeases;
}

/**
 * Moves every shard's stream into MongoDB: one reader a shard, whoever holds its lease. The lease only saves double
 * work; that nothing counts twice is in what applyEntries writes, which is conditional on what was applied before.
 */
export function startLedgerReader(dependencies: LedgerReaderDependencies): Running {
  const stopping = new AbortController();
  // One pause a shard waits on it; Node would take so many listeners for a leak.
  setMaxListeners(shardCount + 1, stopping.signal);
  const outage = new Outage(dependencies.log);
  const loops = Array.from({ length: shardCount }, (_, shard) =>
    readShard(dependencies, shard, outage, stopping.signal),
  );
  return {
    async stop() {
      stopping.abort();
      await Promise.all(loops);
    },
  };
}

/** Tells of an outage once, whichever shards it stops, and of its end. */
class Outage {
  readonly #log: Logger;
  readonly #shards = new Set<number>();

  constructor(log: Logger) {
    this.#log = log;
  }

  begin(shard: number, error: unknown): void {
    if (this.#shards.size === 0) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.warn({ reason }, 'the ledger waits: Redis or MongoDB does not answer');
    }
    this.#shards.add(shard);
  }

  end(shard: number): void {
    if (this.#shards.delete(shard) && this.#shards.size === 0) this.#log.info('the ledger goes on');
  }
}

async function readShard(
  dependencies: LedgerReaderDependencies,
  shard: number,
  outage: Outage,
  signal: AbortSignal,
): Promise<void> {
  const { log, leases } = dependencies;
  let ledger = new ShardLedger(dependencies, shard);
  while (!signal.aborted) {
    let pauseMs = idlePollMs;
    try {
      if (!(await leases.take(shard))) ledger = new ShardLedger(dependencies, shard);
      else if ((await within(patienceMs, ledger.moveBatch(), failLate)) === batchSize) pauseMs = 0;
      outage.end(shard);
    } catch (error) {
      // What hangs may still go on: it shares nothing with what comes after it.
      ledger = new ShardLedger(dependencies, shard);
      if (error instanceof LedgerConflict) continue;
      // The stream keeps what MongoDB cannot take; admission stops at the stream's bound. It may be this worker alone
      // that does not reach MongoDB: another one may have the shard meanwhile.
      outage.begin(shard, error);
      await giveUp(leases, shard, log);
      pauseMs = failurePauseMs;
    }
    if (pauseMs > 0) await pause(pauseMs, signal);
  }
  try {
    if (await leases.take(shard)) await ledger.moveBatch();
  } catch (error) {
    log.debug({ shard, err: error }, 'what is left is for the next reader');
  }
  await giveUp(leases, shard, log);
}

async function giveUp(leases: ShardLeases, shard: number, log: Logger): Promise<void> {
  try {
    await leases.release(shard);
  } catch (error) {
    log.debug({ shard, err: error }, 'the lease of a shard runs out by itself');
  }
}

/** What hangs is left to itself: whoever moves the batch again changes nothing. */
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
