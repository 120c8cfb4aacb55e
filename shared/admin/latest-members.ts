import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';

/** Page size for each shard's list and for records. */
const pageSize = 100;

/** A member of a shard's sorted set of jobs or batches. */
interface ListedMember {
  /** The account's id, a space, and the id of the job or batch. */
  readonly member: string;
  readonly score: number;
}

/** Identifies a job or a batch. */
export interface OwnedId {
  readonly accountId: string;
  readonly id: string;
}

/** Reads the sorted set of one shard, highest score first, one page at a time. */
class ShardMembers {
  readonly #redis: RedisClient;
  readonly #key: string;
  #page: ListedMember[] = [];
  #maxScore = '+inf';

  constructor(redis: RedisClient, key: string) {
    this.#redis = redis;
    this.#key = key;
  }

  /** Returns null if there are no more. */
  async peek(): Promise<ListedMember | null> {
    if (this.#page.length === 0) this.#page = await this.#readPage();
    return this.#page.at(-1) ?? null;
  }

  drop(): void {
    this.#page.pop();
  }

  /**
   * Reads the next page, lowest score first. A page includes all members with its lowest score, so that the next page
   * starts below it.
   */
  async #readPage(): Promise<ListedMember[]> {
    const read = async (minScore: string, ...limit: ['LIMIT', 0, number] | []): Promise<string[]> =>
      await callRedis(() =>
        this.#redis.zrange(
          this.#key,
          this.#maxScore,
          minScore,
          'BYSCORE',
          'REV',
          ...(limit as []),
          'WITHSCORES',
        ),
      );
    const last = (await read('-inf', 'LIMIT', 0, pageSize)).at(-1);
    if (last === undefined) return [];
    const listed = await read(last);
    this.#maxScore = `(${last}`;
    const page: ListedMember[] = [];
    for (let i = 0; i + 1 < listed.length; i += 2) {
      page.push({ member: listed[i]!, score: Number(listed[i + 1]) });
    }
    return page.toReversed();
  }
}

/**
 * Yields the members of the shards' sorted sets together, highest score first, one page at a time. Memory does not grow
 * with their number. Members that are added or removed during the read do not affect the others.
 */
export async function* readLatestMembers(
  redis: RedisClient,
  keys: readonly string[],
): AsyncGenerator<readonly OwnedId[]> {
  const shards = keys.map((key) => new ShardMembers(redis, key));
  for (;;) {
    const members = await takeLatest(shards);
    if (members.length === 0) return;
    yield members.map((member) => {
      const [accountId, id] = member.split(' ') as [string, string];
      return { accountId, id };
    });
  }
}

/** Takes at most one page across all shards. An empty page means that there are no more. */
async function takeLatest(shards: readonly ShardMembers[]): Promise<string[]> {
  const members: string[] = [];
  while (members.length < pageSize) {
    const heads = await Promise.all(shards.map(async (shard) => ({ shard, head: await shard.peek() })));
    let latest: { readonly shard: ShardMembers; readonly head: ListedMember } | null = null;
    for (const { shard, head } of heads) {
      if (head !== null && (latest === null || head.score > latest.head.score)) latest = { shard, head };
    }
    if (latest === null) break;
    members.push(latest.head.member);
    latest.shard.drop();
  }
  return members;
}
