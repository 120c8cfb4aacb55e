import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';

/**
 * A request is charged at most this many times its reservation, so that a vendor's mistake cannot empty a customer's
 * balance. If the balance determined how many units were reserved, the cost of these units is not multiplied.
 */
export const maxReservationMultiple = 2;

/** The part of an account's balance that a request holds from admission to settlement. */
export interface Reservation {
  readonly requestId: string;
  readonly accountId: string;
  readonly costNano: bigint;
  /** Whether it holds a free request instead of money. */
  readonly free: boolean;
  readonly admittedAtMs: number;
  /** The maximum that may be charged for the request; null in a reservation of an earlier version. */
  readonly maxChargeNano: bigint | null;
  /** Hash of the request's Idempotency-Key, if it has one. */
  readonly claimHash: string | null;
}

export function parseReservation(requestId: string, value: string): Reservation {
  const [accountId = '', cost = '0', free, admittedAt, ...optional] = value.split(' ');
  const maxCharge = optional[0]?.startsWith('<') === true ? optional.shift()!.slice(1) : null;
  return {
    requestId,
    accountId,
    costNano: BigInt(cost),
    free: free === '1',
    admittedAtMs: Number(admittedAt),
    maxChargeNano: maxCharge === null ? null : BigInt(maxCharge),
    claimHash: optional[0] ?? null,
  };
}

/** A request for which a process sends heartbeats. */
export interface HeartbeatRequest {
  readonly requestId: string;
  readonly accountId: string;
}

/**
 * The interval at which every process sends heartbeats for its requests. Requests that take less time get none. If a
 * request has no heartbeat for `heartbeatTimeoutMs`, its process is considered dead.
 */
export const requestHeartbeatIntervalMs = 3_000;
const heartbeatTimeoutMs = 9_000;

/** A request younger than this needs no heartbeat. */
const graceMs = heartbeatTimeoutMs;

/** How long a request may still be settled after its reservation was released as an orphan. */
const orphanLifetimeMs = 60 * 60 * 1_000;

/** Far below Redis's limit on the arguments of one command. */
const idsPerCommand = 1_000;

const now = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
`;

/**
 * A heartbeat never makes a request's previous heartbeat expire earlier. A job that may outlive its process sends one
 * with a longer lifetime.
 */
const heartbeatScript = new RedisScript(`${now}
local untilMs = string.format('%.0f', now + tonumber(ARGV[1]))
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'GT', untilMs, ARGV[i]) end
return 1
`);

/** Routine clock adjustments are smaller than this. */
const clockStepMs = 1_000;

/**
 * If the clock stepped back, the heartbeats of dead processes would stay valid for the length of the step. This moves
 * all heartbeats back by that length.
 */
const followClockScript = new RedisScript(`${now}
local held, clock = KEYS[1], KEYS[2]
local stepMs = tonumber(redis.call('GET', clock) or '0') - now
redis.call('SET', clock, string.format('%.0f', now))
if stepMs < ${clockStepMs} then return 0 end
local heartbeats = redis.call('ZRANGE', held, 0, -1, 'WITHSCORES')
for i = 1, #heartbeats, 2 do
  redis.call('ZADD', held, string.format('%.0f', tonumber(heartbeats[i + 1]) - stepMs), heartbeats[i])
end
return stepMs
`);

/**
 * Sets the admission time of a reservation dated in the future to now. Otherwise it could not become an orphan until
 * the clock caught up.
 */
const resetAgeScript = new RedisScript(`${now}
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
local before, after = string.match(ARGV[2], '^(%S+ %d+ %d )%d+(.*)$')
redis.call('HSET', KEYS[1], ARGV[1], before .. string.format('%.0f', now) .. after)
return 1
`);

/** A reservation without a heartbeat. */
export interface Orphan extends Reservation {
  /** When it lost its heartbeat, in ms of Redis's clock. */
  readonly heartbeatLostAtMs: number;
}

export interface OrphanScan {
  readonly orphans: readonly Orphan[];
  /** Reservations admitted before Redis's clock stepped back, so their age is unknown. */
  readonly ahead: readonly Reservation[];
  /** When the reservations were read. */
  readonly nowMs: number;
}

/**
 * Releases the reservation of a request without a heartbeat, and with it the claim of its Idempotency-Key. If the
 * request is settled after that, the settlement restores the claim.
 */
const releaseScript = new RedisScript(`${now}
local account, reservations, orphans, held, claim = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local id, value = ARGV[1], ARGV[2]
if redis.call('HGET', reservations, id) ~= value then return 0 end
local untilMs = redis.call('ZSCORE', held, id)
if untilMs and tonumber(untilMs) >= now then return 0 end
redis.call('HDEL', reservations, id)
local body = claim and redis.call('HGET', claim, 'id') == id and redis.call('HGET', claim, 'body')
redis.call('HSET', orphans, id, value .. (body and ' ' .. body or '') .. '|' .. string.format('%.0f', now))
if redis.call('EXISTS', account) == 1 then
  local cost, isFree = string.match(value, '^%S+ (%d+) (%d)')
  if isFree == '1' then redis.call('HINCRBY', account, 'fres', -1)
  elseif cost ~= '0' then redis.call('HINCRBY', account, 'res', '-' .. cost) end
end
if body then redis.call('DEL', claim) end
return 1
`);

const scanCount = 1_000;

/** The reservations of all accounts, and their heartbeats. */
export class ReservationStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Sends a heartbeat for these requests.
   * @param forMs when the heartbeat expires. The default suits requests for which this process keeps sending heartbeats;
   * a longer time is for a queue that may outlive the process.
   */
  async sendHeartbeat(requests: readonly HeartbeatRequest[], forMs = heartbeatTimeoutMs): Promise<void> {
    const byShard = new Map<number, string[]>();
    for (const { requestId, accountId } of requests) {
      const shard = shardOf(accountId);
      const ids = byShard.get(shard);
      if (ids === undefined) byShard.set(shard, [requestId]);
      else ids.push(requestId);
    }
    await callRedis(() =>
      Promise.all(
        [...byShard].map(([shard, ids]) =>
          heartbeatScript.run(this.#redis, [redisKeys.heldRequests(shard)], [forMs, ...ids]),
        ),
      ),
    );
  }

  /** Reservations of one shard that have no heartbeat although they are old enough to need one. */
  async findOrphans(shard: number): Promise<OrphanScan> {
    const nowMs = await this.#readTime();
    const old: Reservation[] = [];
    const ahead: Reservation[] = [];
    for await (const reservation of this.#scan(shard)) {
      if (nowMs - reservation.admittedAtMs > graceMs) old.push(reservation);
      else if (reservation.admittedAtMs > nowMs + clockStepMs) ahead.push(reservation);
    }
    if (old.length === 0) return { orphans: [], ahead, nowMs };
    const heldUntil: (string | null)[] = [];
    for (let from = 0; from < old.length; from += idsPerCommand) {
      const ids = old.slice(from, from + idsPerCommand).map((one) => one.requestId);
      heldUntil.push(...(await callRedis(() => this.#redis.zmscore(redisKeys.heldRequests(shard), ...ids))));
    }
    const orphans = old.flatMap((reservation, i): Orphan[] => {
      const untilMs = Number(heldUntil[i] ?? reservation.admittedAtMs + graceMs);
      return untilMs < nowMs ? [{ ...reservation, heartbeatLostAtMs: untilMs }] : [];
    });
    return { orphans, ahead, nowMs };
  }

  /** Moves heartbeats back if Redis's clock has stepped back since the last call. */
  async correctForClockStep(shard: number): Promise<void> {
    const keys = [redisKeys.heldRequests(shard), redisKeys.orphanClock(shard)];
    await callRedis(() => followClockScript.run(this.#redis, keys, []));
  }

  /** Treats a reservation dated before the clock stepped back as admitted now. */
  async resetAge(reservation: Reservation): Promise<void> {
    const keys = [redisKeys.reservations(shardOf(reservation.accountId))];
    const args = [reservation.requestId, formatReservation(reservation)];
    await callRedis(() => resetAgeScript.run(this.#redis, keys, args));
  }

  /** @returns true if it was released now; false if it was settled or has a heartbeat again */
  async releaseOrphan(reservation: Reservation): Promise<boolean> {
    const { accountId, claimHash } = reservation;
    const shard = shardOf(accountId);
    const keys = [
      redisKeys.account(accountId),
      redisKeys.reservations(shard),
      redisKeys.orphans(shard),
      redisKeys.heldRequests(shard),
      ...(claimHash === null ? [] : [redisKeys.claim(accountId, claimHash)]),
    ];
    const args = [reservation.requestId, formatReservation(reservation)];
    return (await callRedis(() => releaseScript.run(this.#redis, keys, args))) === 1;
  }

  /** Deletes expired heartbeats, and orphans too old for a late settlement. */
  async forget(shard: number): Promise<void> {
    const nowMs = await this.#readTime();
    const orphans = await callRedis(() => this.#redis.hgetall(redisKeys.orphans(shard)));
    const expiredIds = Object.entries(orphans)
      .filter(([, value]) => nowMs - Number(value.split('|').at(-1)) > orphanLifetimeMs)
      .map(([id]) => id);
    await callRedis(async () => {
      await this.#redis.zremrangebyscore(redisKeys.heldRequests(shard), '-inf', nowMs - heartbeatTimeoutMs);
      // The next call deletes the rest.
      if (expiredIds.length > 0)
        await this.#redis.hdel(redisKeys.orphans(shard), ...expiredIds.slice(0, idsPerCommand));
    });
  }

  async *#scan(shard: number): AsyncGenerator<Reservation> {
    let cursor = '0';
    do {
      const [next, pairs] = await callRedis(() =>
        this.#redis.hscan(redisKeys.reservations(shard), cursor, 'COUNT', scanCount),
      );
      cursor = next;
      for (let i = 0; i + 1 < pairs.length; i += 2) yield parseReservation(pairs[i]!, pairs[i + 1]!);
    } while (cursor !== '0');
  }

  async #readTime(): Promise<number> {
    const [seconds = 0, micros = 0] = (await callRedis(() => this.#redis.time())).map(Number);
    return seconds * 1_000 + Math.floor(micros / 1_000);
  }
}

function formatReservation(reservation: Reservation): string {
  const { accountId, costNano, free, admittedAtMs, maxChargeNano, claimHash } = reservation;
  const words = [accountId, costNano, free ? 1 : 0, admittedAtMs];
  const optional = [maxChargeNano === null ? null : `<${maxChargeNano}`, claimHash];
  return [...words, ...optional.filter((word) => word !== null)].join(' ');
}
