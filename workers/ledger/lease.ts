import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';
import { LeaseTaker } from './lease-taker.ts';

const releaseScript = new LuaScript(new URL('./release-lease.lua', import.meta.url), ['lease', 'workerId']);

/**
 * A lease for work that only one worker at a time should do. It only avoids duplicate work: everything done under it
 * must be safe even if two workers do it concurrently.
 */
export class Lease {
  readonly #redis: RedisClient;
  readonly #workerId: string;
  readonly #key: string;
  readonly #taker: LeaseTaker;
  #renewAtMs = 0;
  /** Counts the calls of `doubt`, so that the reply to an earlier question is not believed. */
  #doubts = 0;
  #taking: Promise<boolean> | null = null;

  /** @param taker of this worker, which several leases may share */
  constructor(
    redis: RedisClient,
    workerId: string,
    key: string,
    taker: LeaseTaker = new LeaseTaker(redis, workerId),
  ) {
    this.#redis = redis;
    this.#workerId = workerId;
    this.#key = key;
    this.#taker = taker;
  }

  /** @returns whether this worker now holds the lease, for at least the next four seconds */
  async take(): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs < this.#renewAtMs) return true;
    const doubts = this.#doubts;
    this.#taking = this.#taker.take(this.#key);
    const isHeld = await this.#taking;
    // The lease is still held for some time after that.
    if (isHeld && doubts === this.#doubts) this.#renewAtMs = nowMs + liveness.shard.reportMs;
    return isHeld;
  }

  /** Makes the next `take` ask Redis, because another worker seems to hold the lease too. */
  doubt(): void {
    this.#doubts += 1;
    this.#renewAtMs = 0;
  }

  async release(): Promise<void> {
    this.doubt();
    // Otherwise Redis might get the release first.
    await this.#taking?.catch(() => undefined);
    await releaseScript.run(this.#redis, { lease: this.#key, workerId: this.#workerId });
  }
}
