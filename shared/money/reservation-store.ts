// decision 0013
import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';
import { liveness } from '../platform/redis/liveness.ts';

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
  /** The maximum that may be charged for the request. */
  readonly maxChargeNano: bigint;
  /** Hash of the request's Idempotency-Key, if it has one. */
  readonly claimHash: string | null;
}

export function parseReservation(requestId: string, value: string): Reservation {
  const [accountId = '', cost = '0', free, admittedAt, maxCharge = '<0', claimHash = null] = value.split(' ');
  return {
    requestId,
    accountId,
    costNano: BigInt(cost),
    free: free === '1',
    admittedAtMs: Number(admittedAt),
    maxChargeNano: BigInt(maxCharge.slice(1)),
    claimHash,
  };
}

/** A request for which a process sends heartbeats. */
export interface HeartbeatRequest {
  readonly requestId: string;
  readonly accountId: string;
}

/** A request younger than this needs no heartbeat. */
const graceMs = liveness.request.deadMs;

/** Far below Redis's limit on the arguments of one command. */
const idsPerCommand = 1_000;

/** Routine clock adjustments are smaller than this. */
const clockStepMs = 1_000;

const heartbeatScript = new LuaScript(
  new URL('./send-heartbeat.lua', import.meta.url),
  ['heldRequests', 'lifetimeMs'],
  { itemNames: ['id'] },
);
const followClockScript = new LuaScript(
  new URL('./follow-clock.lua', import.meta.url),
  ['heldRequests', 'clock'],
  { constants: { clockStepMs } },
);
const resetAgeScript = new LuaScript(new URL('./reset-age.lua', import.meta.url), [
  'reservations',
  'id',
  'reservation',
]);
const releaseScript = new LuaScript(new URL('./release-orphan.lua', import.meta.url), [
  'account',
  'reservations',
  'orphans',
  'heldRequests',
  'claim',
  'id',
  'reservation',
]);

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
  async sendHeartbeat(requests: readonly HeartbeatRequest[], forMs = liveness.request.deadMs): Promise<void> {
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
          heartbeatScript.run(
            this.#redis,
            { heldRequests: redisKeys.heldRequests(shard), lifetimeMs: forMs },
            ids.map((id) => ({ id })),
          ),
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
    const heldRequests = redisKeys.heldRequests(shard);
    const clock = redisKeys.orphanClock(shard);
    await callRedis(() => followClockScript.run(this.#redis, { heldRequests, clock }));
  }

  /** Treats a reservation dated before the clock stepped back as admitted now. */
  async resetAge(reservation: Reservation): Promise<void> {
    const values = {
      reservations: redisKeys.reservations(shardOf(reservation.accountId)),
      id: reservation.requestId,
      reservation: formatReservation(reservation),
    };
    await callRedis(() => resetAgeScript.run(this.#redis, values));
  }

  /** @returns true if it was released now; false if it was settled or has a heartbeat again */
  async releaseOrphan(reservation: Reservation): Promise<boolean> {
    const { accountId, claimHash } = reservation;
    const shard = shardOf(accountId);
    const reservations = redisKeys.reservations(shard);
    const values = {
      account: redisKeys.account(accountId),
      reservations,
      orphans: redisKeys.orphans(shard),
      heldRequests: redisKeys.heldRequests(shard),
      claim: claimHash === null ? reservations : redisKeys.claim(accountId, claimHash),
      id: reservation.requestId,
      reservation: formatReservation(reservation),
    };
    return (await callRedis(() => releaseScript.run(this.#redis, values))) === 1;
  }

  /** Deletes expired heartbeats, and orphans too old for a late settlement. */
  async forget(shard: number): Promise<void> {
    const nowMs = await this.#readTime();
    const orphans = await callRedis(() => this.#redis.hgetall(redisKeys.orphans(shard)));
    const expiredIds = Object.entries(orphans)
      .filter(([, value]) => nowMs - Number(value.split('|').at(-1)) > liveness.lateSettlement.forgottenMs)
      .map(([id]) => id);
    await callRedis(async () => {
      await this.#redis.zremrangebyscore(
        redisKeys.heldRequests(shard),
        '-inf',
        nowMs - liveness.request.deadMs,
      );
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
  const words = [accountId, costNano, free ? 1 : 0, admittedAtMs, `<${maxChargeNano}`];
  return (claimHash === null ? words : [...words, claimHash]).join(' ');
}
