import { setMaxListeners } from 'node:events';
import { within } from '../../shared/runtime/within.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { LedgerConflict, type LedgerStore } from '../../shared/ledger/ledger-store.ts';
import {
  formatStreamId,
  isAfter,
  parseLedgerEntry,
  parseStreamId,
  type StreamId,
} from '../../shared/ledger/usage-event.ts';
import { hasForgotten, rememberCheckpoint } from '../../shared/ledger/wake-stream.ts';
import type { AccountStore } from '../../shared/accounts/account-store.ts';
import type { HotAccountStore } from '../../shared/billing/hot-account-store.ts';
import { RedisScript, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardCount, shardOf } from '../../shared/redis/redis-keys.ts';
import { applyEntries } from './apply-entries.ts';
import type { ShardLeases } from './shard-leases.ts';

const batchSize = 1_000;
/** How soon a settled request is in MongoDB while little happens; a full batch is followed by the next at once. */
const idlePollMs = 200;
const failurePauseMs = 1_000;
/** Far above what a batch takes: a driver's command that never ends must not end a shard's ledger. */
const patienceMs = 60_000;
/**
 * Trims what is at rest, and remembers up to where: whoever restores an account from MongoDB asks for it. A reader that
 * was paused and goes on where another has been further moves nothing back.
 */
const trimScript = new RedisScript(`
local function split(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local ms, seq = split(ARGV[1])
local knownMs, knownSeq = split(redis.call('GET', KEYS[2]) or '0-0')
if ms > knownMs or (ms == knownMs and seq > knownSeq) then redis.call('SET', KEYS[2], ARGV[1]) end
return redis.call('XTRIM', KEYS[1], 'MINID', ARGV[2])
`);

export interface LedgerReaderDependencies {
  readonly redis: RedisClient;
  readonly store: LedgerStore;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
  readonly leases: ShardLeases;
  readonly log: Logger;
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
  /** Up to where Redis is known to remember what MongoDB has. */
  let remembered: string | null = null;
  while (!signal.aborted) {
    let pauseMs = idlePollMs;
    try {
      const trimmed = await leases.take(shard);
      if (trimmed !== null) {
        // Whatever this reader did not write itself may be what a Redis remembers that came back with less than it had.
        if (trimmed !== remembered) await restoreForgotten(dependencies, shard, trimmed);
        const moved = await within(patienceMs, moveBatch(dependencies, shard), failLate);
        remembered = moved.last ?? trimmed;
        if (moved.count === batchSize) pauseMs = 0;
      }
      outage.end(shard);
    } catch (error) {
      remembered = null;
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
    if ((await leases.take(shard)) !== null) await moveBatch(dependencies, shard);
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

export interface MovedBatch {
  readonly count: number;
  /** Id of the last entry that was moved; null where there was none. */
  readonly last: string | null;
}

export async function moveBatch(
  { redis, store, hotAccounts, log }: Omit<LedgerReaderDependencies, 'accounts' | 'leases'>,
  shard: number,
  most = batchSize,
): Promise<MovedBatch> {
  const stream = redisKeys.ledgerStream(shard);
  // What is in the stream is not yet at rest: it is trimmed only after the checkpoint, so it is read from its start.
  const raw = await redis.xrange(stream, '-', '+', 'COUNT', most);
  if (raw.length === 0) return { count: 0, last: null };
  const entries = raw.map(([id, fields]) => parseLedgerEntry(id, fields));
  const repeated = await applyEntries(store, entries);
  const last = entries[entries.length - 1]!.streamId;
  await store.writeCheckpoint(shard, last);
  const keys = [stream, redisKeys.ledgerTrimmed(shard)];
  await trimScript.run(redis, keys, [formatStreamId(last), formatStreamId(next(last))]);
  for (const accountId of repeated) {
    log.error({ shard, accountId }, 'Redis moved money again that it had forgotten; the account is restored');
    await hotAccounts.reload(accountId);
  }
  return { count: entries.length, last: formatStreamId(last) };
}

/**
 * A Redis that came back without its last moments has accounts that are richer than MongoDB, which had been told of
 * charges since. Those accounts are restored from MongoDB, and it is said.
 */
async function restoreForgotten(
  dependencies: LedgerReaderDependencies,
  shard: number,
  trimmedText: string,
): Promise<void> {
  const { redis, store, accounts, hotAccounts, log } = dependencies;
  const trimmed = parseStreamId(trimmedText);
  const checkpoint = await store.readCheckpoint(shard);
  if (!isAfter(checkpoint, trimmed) || !(await hasForgotten(redis, shard, checkpoint))) return;
  let restored = 0;
  for (const id of await accounts.findAppliedSince(trimmed.ms)) {
    // One that Redis does not hold is restored by its first use.
    if (shardOf(id) !== shard || (await redis.exists(redisKeys.account(id))) === 0) continue;
    await hotAccounts.reload(id);
    restored += 1;
  }
  // Last: a reader that takes over before this restores them all again.
  await rememberCheckpoint(redis, shard, checkpoint);
  log.error(
    { shard, redisHas: trimmedText, mongodbHas: formatStreamId(checkpoint), restored },
    'Redis has forgotten entries that MongoDB has; accounts are restored from MongoDB',
  );
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
