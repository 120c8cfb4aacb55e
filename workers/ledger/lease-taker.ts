import { liveness } from '../../shared/platform/redis/liveness.ts';
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';

const takeScript = new LuaScript(new URL('./take-leases.lua', import.meta.url), ['workerId', 'leaseMs'], {
  itemNames: ['lease'],
});

/**
 * Takes and renews leases for a worker. Those that are asked for in one event-loop turn take one script together, except
 * on a Cluster, where a script cannot use the keys of several nodes.
 */
export class LeaseTaker {
  readonly #redis: RedisClient;
  readonly #workerId: string;
  #keys: string[] = [];
  #replies: Promise<readonly number[]> | null = null;

  constructor(redis: RedisClient, workerId: string) {
    this.#redis = redis;
    this.#workerId = workerId;
  }

  /** @returns whether the worker now holds the lease */
  async take(key: string): Promise<boolean> {
    if (this.#redis.isCluster) return (await this.#run([key]))[0] === 1;
    const index = this.#keys.push(key) - 1;
    this.#replies ??= this.#runLater();
    return (await this.#replies)[index] === 1;
  }

  async #runLater(): Promise<readonly number[]> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    const keys = this.#keys;
    this.#keys = [];
    this.#replies = null;
    return await this.#run(keys);
  }

  async #run(keys: readonly string[]): Promise<readonly number[]> {
    const values = { workerId: this.#workerId, leaseMs: liveness.shard.deadMs };
    return (await takeScript.run(
      this.#redis,
      values,
      keys.map((lease) => ({ lease })),
    )) as number[];
  }
}
