import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';
import { parseStreamId } from './usage-event.ts';

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

/** The place of a dead letter. */
export interface DeadLetterPlace {
  /** Its id in the dead-letter stream. Redis never gives it again. */
  readonly id: string;
  readonly shard: number;
}

/** The copy of an unread entry in the dead-letter stream. */
export interface DeadLetter extends UnreadEntry, DeadLetterPlace {
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

  /** @returns the latest dead letters of all shards, the latest first. @param after only those that follow it */
  async listLatest(limit: number, after: DeadLetterPlace | null): Promise<DeadLetter[]> {
    const shards = Array.from({ length: shardCount }, (_, shard) => shard);
    const pages = await Promise.all(
      shards.map(async (shard) => {
        const end = after === null ? '+' : shard < after.shard ? after.id : `(${after.id}`;
        const page = await callRedis(() =>
          this.#redis.xrevrange(redisKeys.ledgerDead(shard), end, '-', 'COUNT', limit),
        );
        return page.map(([id, values]) => toDeadLetter(shard, id, values));
      }),
    );
    return pages.flat().sort(compareLatest).slice(0, limit);
  }

  /** @returns null if it is not there */
  async find({ shard, id }: DeadLetterPlace): Promise<DeadLetter | null> {
    const [found] = await callRedis(() => this.#redis.xrange(redisKeys.ledgerDead(shard), id, id));
    return found === undefined ? null : toDeadLetter(shard, id, found[1]);
  }

  /** @returns whether it was there */
  async delete({ shard, id }: DeadLetterPlace): Promise<boolean> {
    return (await callRedis(() => this.#redis.xdel(redisKeys.ledgerDead(shard), id))) === 1;
  }
}

/** Of letters with the same id, that of the last shard is first. */
function compareLatest(one: DeadLetterPlace, other: DeadLetterPlace): number {
  const [a, b] = [parseStreamId(one.id), parseStreamId(other.id)];
  return b.ms - a.ms || b.seq - a.seq || other.shard - one.shard;
}

function toDeadLetter(shard: number, id: string, values: readonly string[]): DeadLetter {
  const [, streamId = '', , reason = '', , counted = '0', ...fields] = values;
  return { id, shard, streamId, reason, isCounted: counted === '1', accountId: readAccount(fields), fields };
}

/** @returns the account of an entry; null if it is not at the usual position */
export const readAccount = (fields: readonly string[]): string | null =>
  fields[2] === 'account' && fields[3] !== undefined && fields[3] !== '' ? fields[3] : null;
