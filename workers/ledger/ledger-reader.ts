import { setMaxListeners } from 'node:events';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { LedgerConflict, type LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { formatStreamId, parseLedgerEntry, type StreamId } from '../../shared/ledger/usage-event.ts';
import { RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../shared/redis/redis-keys.ts';
import { applyEntries } from './apply-entries.ts';

const batchSize = 1_000;
/** How soon a settled request is in MongoDB while little happens; a full batch is followed by the next at once. */
const idlePollMs = 200;
const failurePauseMs = 1_000;
const leaseMs = 5_000;

/** Takes the lease where it is free, and renews one's own. */
const leaseScript = new RedisScript(`
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`);

const releaseScript = new RedisScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
`);

export interface LedgerReaderDependencies {
  readonly redis: RedisClient;
  readonly store: LedgerStore;
  readonly log: Logger;
  readonly workerId: string;
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
  const { redis, log, workerId } = dependencies;
  const lease = redisKeys.ledgerLease(shard);
  while (!signal.aborted) {
    let pauseMs = idlePollMs;
    try {
      const holds = await leaseScript.run(redis, [lease], [workerId, leaseMs]);
      const moved = holds === 1 ? await moveBatch(dependencies, shard) : 0;
      if (moved === batchSize) pauseMs = 0;
      outage.end(shard);
    } catch (error) {
      if (error instanceof LedgerConflict) continue;
      // The stream keeps what MongoDB cannot take; admission stops at the stream's bound.
      outage.begin(shard, error);
      pauseMs = failurePauseMs;
    }
    if (pauseMs > 0) await pause(pauseMs, signal);
  }
  try {
    if ((await leaseScript.run(redis, [lease], [workerId, leaseMs])) === 1)
      await moveBatch(dependencies, shard);
    await releaseScript.run(redis, [lease], [workerId]);
  } catch (error) {
    log.debug({ shard, err: error }, 'what is left is for the next reader');
  }
}

/** @returns how many entries were moved. */
async function moveBatch({ redis, store }: LedgerReaderDependencies, shard: number): Promise<number> {
  const stream = redisKeys.ledgerStream(shard);
  // What is in the stream is not yet at rest: it is trimmed only after the checkpoint, so it is read from its start.
  const raw = await redis.xrange(stream, '-', '+', 'COUNT', batchSize);
  if (raw.length === 0) return 0;
  const entries = raw.map(([id, fields]) => parseLedgerEntry(id, fields));
  await applyEntries(store, entries);
  const last = entries[entries.length - 1]!.streamId;
  await store.writeCheckpoint(shard, last);
  await redis.xtrim(stream, 'MINID', formatStreamId(next(last)));
  return entries.length;
}

const next = (id: StreamId): StreamId => ({ ms: id.ms, seq: id.seq + 1 });

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
