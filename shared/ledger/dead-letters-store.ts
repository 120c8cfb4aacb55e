import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardCount } from '../redis/redis-keys.ts';

/** Moves an entry as it is. Its own id, and why it cannot be read, come first. */
const setAsideScript = new RedisScript(`
local found = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])
if #found == 0 then return 0 end
redis.call('XADD', KEYS[2], '*', 'entry', ARGV[1], 'reason', ARGV[2], unpack(found[1][2]))
redis.call('XDEL', KEYS[1], ARGV[1])
return 1
`);

/** Moves an entry back, to the end of the stream: its place there says what MongoDB has, and that has moved on. */
const putBackScript = new RedisScript(`
local found = redis.call('XRANGE', KEYS[2], ARGV[1], ARGV[1])
if #found == 0 then return 0 end
redis.call('XADD', KEYS[1], '*', unpack(found[1][2], 5))
redis.call('XDEL', KEYS[2], ARGV[1])
return 1
`);

const pageSize = 500;

export interface DeadLetter {
  readonly id: string;
  readonly shard: number;
  /** Its id in the ledger's stream, which begins with when it was written (Unix milliseconds). */
  readonly entry: string;
  readonly reason: string;
  /** The account that it names, as far as that can be told. */
  readonly accountId: string | null;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Entries of the ledger's streams that cannot be read, so that those behind them can be moved to MongoDB. The balance in
 * Redis has their money; MongoDB lacks it until they are put back by a release that can read them.
 */
export class DeadLetters {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @returns false if another process was quicker */
  async setAside(shard: number, entry: string, reason: string): Promise<boolean> {
    return (await callRedis(() => setAsideScript.run(this.#redis, keysOf(shard), [entry, reason]))) === 1;
  }

  /** All of them, by shard, the oldest first. */
  async *list(): AsyncGenerator<DeadLetter> {
    for (let shard = 0; shard < shardCount; shard++) {
      for (let from = '-'; ;) {
        const after = from;
        const page = await callRedis(() =>
          this.#redis.xrange(redisKeys.ledgerDead(shard), after, '+', 'COUNT', pageSize),
        );
        for (const [id, values] of page) yield toDeadLetter(shard, id, values);
        if (page.length < pageSize) break;
        from = `(${page.at(-1)![0]}`;
      }
    }
  }

  /** @returns false if it is gone */
  async putBack({ shard, id }: DeadLetter): Promise<boolean> {
    return (await callRedis(() => putBackScript.run(this.#redis, keysOf(shard), [id]))) === 1;
  }
}

const keysOf = (shard: number): string[] => [redisKeys.ledgerStream(shard), redisKeys.ledgerDead(shard)];

function toDeadLetter(shard: number, id: string, values: readonly string[]): DeadLetter {
  const all = new Map<string, string>();
  for (let i = 0; i + 1 < values.length; i += 2) all.set(values[i]!, values[i + 1]!);
  const fields = Object.fromEntries([...all].filter(([name]) => name !== 'entry' && name !== 'reason'));
  const [, accountId = null] = /"accountId":"([^"]+)"/.exec(fields['event'] ?? '') ?? [];
  return { id, shard, entry: all.get('entry') ?? '', reason: all.get('reason') ?? '', accountId, fields };
}
