import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardCount } from '../redis/redis-keys.ts';

/**
 * Per shard. More unreadable entries than this mean that the wrong release is running, not that entries are damaged.
 * The shard then waits for the right release.
 */
export const maxDeadLetters = 1_000;

/**
 * Copies an entry under its own id. Ids only increase, so an id below the last one was already copied, by a reader that
 * died before it trimmed the entry.
 */
const addScript = new RedisScript(`
if #redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1]) > 0 then return 0 end
if redis.call('XLEN', KEYS[1]) >= ${maxDeadLetters} then return -1 end
return type(redis.pcall('XADD', KEYS[1], unpack(ARGV))) == 'string' and 1 or 0
`);

const pageSize = 100;

/** An entry of a shard's ledger stream that could not be read completely. */
export interface DeadLetter {
  readonly shard: number;
  /** Its id in the ledger stream. */
  readonly streamId: string;
  readonly reason: string;
  /**
   * Whether its money is counted in MongoDB and only its event could not be read. Otherwise the entry had no effect
   * there.
   */
  readonly isCounted: boolean;
  /** Null if the entry does not contain it. */
  readonly accountId: string | null;
  /** The entry's fields and values, alternating and unchanged. */
  readonly fields: readonly string[];
}

/** The shard has the maximum number of dead letters. */
export class TooManyDeadLetters extends Error {
  override readonly name = 'TooManyDeadLetters';
}

/**
 * The dead-letter streams, one per shard. They store entries that the ledger's readers could not read, for operators to
 * resolve.
 */
export class DeadLetters {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * @returns false if it was added before
   * @throws TooManyDeadLetters
   */
  async add({ shard, streamId, reason, isCounted, fields }: DeadLetter): Promise<boolean> {
    const args = [streamId, 'reason', reason, 'counted', isCounted ? '1' : '0', ...fields];
    const added = await callRedis(() => addScript.run(this.#redis, [redisKeys.ledgerDead(shard)], args));
    if (added === -1) throw new TooManyDeadLetters(`shard ${shard} has ${maxDeadLetters} dead letters`);
    return added === 1;
  }

  /** Yields all dead letters by shard, the oldest first. */
  async *list(): AsyncGenerator<DeadLetter> {
    for (let shard = 0; shard < shardCount; shard++) yield* this.listShard(shard);
  }

  async *listShard(shard: number): AsyncGenerator<DeadLetter> {
    const key = redisKeys.ledgerDead(shard);
    let after = '-';
    for (;;) {
      const from = after;
      const page = await callRedis(() => this.#redis.xrange(key, from, '+', 'COUNT', pageSize));
      for (const [streamId, values] of page) yield toDeadLetter(shard, streamId, values);
      if (page.length < pageSize) return;
      after = `(${page.at(-1)![0]}`;
    }
  }

  /** @returns whether it existed */
  async delete({ shard, streamId }: Pick<DeadLetter, 'shard' | 'streamId'>): Promise<boolean> {
    return (await callRedis(() => this.#redis.xdel(redisKeys.ledgerDead(shard), streamId))) === 1;
  }

  /**
   * Appends a dead letter's entry to the ledger stream again. The entry keeps its request or refill id, so that its
   * money counts once however often it is returned.
   */
  async returnToLedger({ shard, streamId, accountId, fields }: DeadLetter): Promise<void> {
    const id = fields.includes('id') ? [] : ['id', `${accountId}:${streamId}`];
    await callRedis(() => this.#redis.xadd(redisKeys.ledgerStream(shard), '*', ...fields, ...id));
  }
}

function toDeadLetter(shard: number, streamId: string, values: readonly string[]): DeadLetter {
  const [, reason = '', , counted = '0', ...fields] = values;
  const accountId = fields[2] === 'account' ? (fields[3] ?? null) : null;
  return { shard, streamId, reason, isCounted: counted === '1', accountId, fields };
}
