import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';

/**
 * Per shard. With more unreadable entries than this, a later release has probably written them. Reading of the shard
 * then stops until workers of that release run, or an operator discards dead letters.
 */
export const maxDeadLetters = 1_000;

/** An entry of a shard's ledger stream that could not be read completely. */
export interface UnreadEntry {
  /** Its id in the ledger stream. */
  readonly streamId: string;
  /** The account. Null if the entry has none. */
  readonly accountId: string | null;
  readonly reason: string;
  /** Whether its amounts are applied, because only its event could not be read. Otherwise the entry is ignored. */
  readonly isCounted: boolean;
}

/** The copy of an unread entry in the dead-letter stream. */
export interface DeadLetter extends UnreadEntry {
  /** Its id in the dead-letter stream. */
  readonly id: string;
  readonly shard: number;
  /** The entry's fields and values, alternating and unchanged. */
  readonly fields: readonly string[];
}

const pageSize = 100;

/**
 * The dead-letter streams, one per shard. They keep the entries that ledger readers could not read, for operators to
 * inspect.
 */
export class DeadLetters {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async count(shard: number): Promise<number> {
    return await callRedis(() => this.#redis.xlen(redisKeys.ledgerDead(shard)));
  }

  /** Yields all dead letters by shard, oldest first. */
  async *list(): AsyncGenerator<DeadLetter> {
    for (let shard = 0; shard < shardCount; shard++) yield* this.listShard(shard);
  }

  async *listShard(shard: number): AsyncGenerator<DeadLetter> {
    const key = redisKeys.ledgerDead(shard);
    let after = '-';
    for (;;) {
      const from = after;
      const page = await callRedis(() => this.#redis.xrange(key, from, '+', 'COUNT', pageSize));
      for (const [id, values] of page) yield toDeadLetter(shard, id, values);
      if (page.length < pageSize) return;
      after = `(${page.at(-1)![0]}`;
    }
  }

  /** @returns whether it was there */
  async delete({ shard, id }: Pick<DeadLetter, 'shard' | 'id'>): Promise<boolean> {
    return (await callRedis(() => this.#redis.xdel(redisKeys.ledgerDead(shard), id))) === 1;
  }
}

function toDeadLetter(shard: number, id: string, values: readonly string[]): DeadLetter {
  const [, streamId = '', , reason = '', , counted = '0', ...fields] = values;
  return { id, shard, streamId, reason, isCounted: counted === '1', accountId: readAccount(fields), fields };
}

/** @returns the account of an entry; null if it is not at the usual position */
export const readAccount = (fields: readonly string[]): string | null =>
  fields[2] === 'account' && fields[3] !== undefined && fields[3] !== '' ? fields[3] : null;
