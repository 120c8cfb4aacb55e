import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import type { Logger } from '../platform/runtime/logger.ts';

/** A conversation that continues later than this has lost its reasoning. */
const lifetimeSeconds = 6 * 60 * 60;
const maxValueBytes = 256 * 1024;
/** Limits per request. Vendors require the reasoning of the latest turns. */
const maxLoadedCalls = 256;
const maxLoadedBytes = 4 * 1024 * 1024;

const loadScript = new LuaScript(new URL('./load-reasoning.lua', import.meta.url), ['maxBytes', 'lifetime'], {
  itemNames: ['key'],
});

/** Reasoning and the tool call that it led to. */
export interface SavedReasoning {
  /** As returned by `hashCall`. */
  readonly hash: string;
  readonly value: object;
}

/**
 * Stores the signed reasoning of earlier responses by account and by the hash of a tool call. Vendors require it back,
 * but OpenAI clients drop it. No request fails without it, so a Redis outage is not an error here.
 */
export class ReasoningStore {
  readonly #redis: RedisClient;
  readonly #log: Logger;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  async save(accountId: string, saved: readonly SavedReasoning[]): Promise<void> {
    try {
      await Promise.all(saved.map((one) => this.#save(accountId, one)));
    } catch (error) {
      this.#log.debug({ err: error }, 'reasoning not saved');
    }
  }

  /**
   * @param hashes of the calls, oldest first
   * @returns values by hash: the latest ones that fit the limits
   */
  async load(accountId: string, hashes: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
    const latestFirst = [...new Set(hashes)].slice(-maxLoadedCalls).toReversed();
    if (latestFirst.length === 0) return new Map();
    const keys = latestFirst.map((hash) => ({ key: redisKeys.reasoning(accountId, hash) }));
    try {
      const limits = { maxBytes: maxLoadedBytes, lifetime: lifetimeSeconds };
      const found = (await loadScript.run(this.#redis, limits, keys)) as unknown[];
      return new Map(readPairs(found, latestFirst));
    } catch (error) {
      this.#log.debug({ err: error }, 'reasoning not loaded');
      return new Map();
    }
  }

  async #save(accountId: string, { hash, value }: SavedReasoning): Promise<void> {
    const text = JSON.stringify(value);
    if (Buffer.byteLength(text) > maxValueBytes) return;
    await this.#redis.set(redisKeys.reasoning(accountId, hash), text, 'EX', lifetimeSeconds);
  }
}

/** Reads the script's result: indexes into its list of keys (from 1), each followed by the value. */
function* readPairs(found: readonly unknown[], hashes: readonly string[]): Generator<[string, unknown]> {
  for (let at = 0; at < found.length; at += 2) {
    yield [hashes[Number(found[at]) - 1]!, JSON.parse(String(found[at + 1]))];
  }
}
