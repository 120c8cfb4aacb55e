import type { JobRecord } from '../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../shared/work/jobs/job-store.ts';
import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';

/** Page size for each shard's list and for records. */
const pageSize = 100;

/** An entry in a shard's list of failed jobs. `member` is the account's id, a space, and the job's id. */
interface Failure {
  readonly member: string;
  readonly failedAtMs: number;
}

/** Reads one shard's failures, latest first, one page at a time. */
class ShardFailures {
  readonly #redis: RedisClient;
  readonly #key: string;
  #page: Failure[] = [];
  #maxScore = '+inf';

  constructor(redis: RedisClient, key: string) {
    this.#redis = redis;
    this.#key = key;
  }

  /** Returns null if there are no more. */
  async peek(): Promise<Failure | null> {
    if (this.#page.length === 0) this.#page = await this.#readPage();
    return this.#page.at(-1) ?? null;
  }

  drop(): void {
    this.#page.pop();
  }

  /**
   * Reads the next page, earliest first. A page includes all failures of its earliest millisecond, so that the next
   * page starts before that.
   */
  async #readPage(): Promise<Failure[]> {
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
    const page: Failure[] = [];
    for (let i = 0; i + 1 < listed.length; i += 2) {
      page.push({ member: listed[i]!, failedAtMs: Number(listed[i + 1]) });
    }
    return page.toReversed();
  }
}

/**
 * Yields a queue's jobs that failed within the last day, latest first. Memory does not grow with their number. Jobs
 * that fail or are retried during the read do not affect the others.
 */
export async function* readFailedJobs(redis: RedisClient, queue: QueueName): AsyncGenerator<JobRecord> {
  const store = new JobStore(redis);
  const shards = Array.from(
    { length: shardCount },
    (_, shard) => new ShardFailures(redis, redisKeys.jobFailures(shard, queue)),
  );
  for (;;) {
    const members = await takeLatest(shards);
    if (members.length === 0) return;
    const found = await Promise.all(
      members.map((member) => {
        const [accountId, id] = member.split(' ') as [string, string];
        return store.find(accountId, id);
      }),
    );
    for (const one of found) if (one !== null) yield one.job;
  }
}

/** Takes at most one page across all shards. An empty page means that there are no more. */
async function takeLatest(shards: readonly ShardFailures[]): Promise<string[]> {
  const members: string[] = [];
  while (members.length < pageSize) {
    const heads = await Promise.all(shards.map(async (shard) => ({ shard, head: await shard.peek() })));
    let latest: { readonly shard: ShardFailures; readonly head: Failure } | null = null;
    for (const { shard, head } of heads) {
      if (head !== null && (latest === null || head.failedAtMs > latest.head.failedAtMs))
        latest = { shard, head };
    }
    if (latest === null) break;
    members.push(latest.head.member);
    latest.shard.drop();
  }
  return members;
}
