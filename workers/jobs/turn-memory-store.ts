import { createHash } from 'node:crypto';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Recalled } from '../upstreams/upstream.ts';

/** A conversation that is gone on with later than this is answered without what was remembered. */
const keptSeconds = 6 * 60 * 60;
const maxValueBytes = 256 * 1024;
const maxRecalled = 256;

/**
 * What vendors want back of their earlier answers (thinking with its signature) and OpenAI's clients drop: kept by
 * account and tool-call id for as long as the conversation goes on. Losing it costs no request, only the thinking of
 * one turn, so an outage of Redis is no failure here.
 */
export class TurnMemoryStore {
  readonly #redis: RedisClient;
  readonly #log: Logger;

  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  async remember(accountId: string, toolCallId: string, value: object): Promise<void> {
    const text = JSON.stringify(value);
    if (text.length > maxValueBytes) return;
    try {
      await this.#redis.set(keyOf(accountId, toolCallId), text, 'EX', keptSeconds);
    } catch (error) {
      this.#log.debug({ err: error }, 'a turn could not be remembered');
    }
  }

  async recall(accountId: string, toolCallIds: readonly string[]): Promise<Recalled> {
    // The latest turns are those that a vendor asks for.
    const ids = [...new Set(toolCallIds)].slice(-maxRecalled);
    const recalled = new Map<string, unknown>();
    if (ids.length === 0) return recalled;
    const keys = ids.map((id) => keyOf(accountId, id));
    try {
      const texts = await this.#redis.mget(keys);
      for (const [i, text] of texts.entries()) {
        if (text === null) continue;
        recalled.set(ids[i]!, JSON.parse(text));
        this.#keep(keys[i]!);
      }
    } catch (error) {
      this.#log.debug({ err: error }, 'earlier turns could not be recalled');
    }
    return recalled;
  }

  #keep(key: string): void {
    this.#redis.expire(key, keptSeconds).catch((error: unknown) => {
      this.#log.debug({ err: error }, 'a remembered turn could not be kept for longer');
    });
  }
}

/** Ids are made by vendors and sent by callers: of any length, of any letters. */
function keyOf(accountId: string, toolCallId: string): string {
  const callHash = createHash('sha256').update(toolCallId).digest('base64url').slice(0, 32);
  return redisKeys.remembered(accountId, callHash);
}
