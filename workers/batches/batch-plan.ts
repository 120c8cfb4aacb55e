import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import type { BatchPrice } from '../../shared/work/batches/batch-store.ts';

/** What workers need to know of a batch. It does not change. */
export interface BatchPlan {
  readonly endpoint: string;
  /** The object with the lines, and its size. */
  readonly inputKey: string;
  readonly inputBytes: number;
  /** The prices at its creation, by model. */
  readonly prices: ReadonlyMap<string, BatchPrice>;
  readonly userIp: string;
  /** How long the result files are kept. */
  readonly resultLifetimeSeconds: number;
  /** The public URL of the gateway, for links to images. */
  readonly publicUrl: string;
}

const fields = ['op', 'key', 'size', 'prices', 'ip', 'fl', 'pu'] as const;
const maxPlans = 256;

/** The batches that this worker has lines of. */
export class BatchPlans {
  readonly #redis: RedisClient;
  readonly #recent = createRecentEntries<string, BatchPlan>(maxPlans);

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Returns null if the batch has ended.
   * @throws AppError `service_unavailable` while Redis is unavailable
   */
  async find(accountId: string, batchId: string): Promise<BatchPlan | null> {
    const known = this.#recent.get(batchId);
    if (known !== undefined) return known;
    const values = await callRedis(() => this.#redis.hmget(redisKeys.batch(accountId, batchId), ...fields));
    const [endpoint, inputKey, bytes, prices, userIp, lifetime, publicUrl] = values;
    if (typeof prices !== 'string') return null;
    const plan: BatchPlan = {
      endpoint: endpoint ?? '',
      inputKey: inputKey ?? '',
      inputBytes: Number(bytes),
      prices: new Map(Object.entries(JSON.parse(prices) as Record<string, BatchPrice>)),
      userIp: userIp ?? '',
      resultLifetimeSeconds: Number(lifetime),
      publicUrl: publicUrl ?? '',
    };
    this.#recent.set(batchId, plan);
    return plan;
  }
}
