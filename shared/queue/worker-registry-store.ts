import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { heartbeatLifetimeMs } from './heartbeat-times.ts';
import type { QueueName } from './job-kinds.ts';

/**
 * Uses Redis's clock, so that machines need not agree on the time. If that clock stepped back, dead workers would count
 * as alive until it caught up, so the first heartbeat shortens all entries to the usual lifetime from now.
 */
const heartbeatScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local untilMs = string.format('%.0f', now + tonumber(ARGV[2]))
redis.call('ZADD', KEYS[1], untilMs, ARGV[1])
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. untilMs, '+inf')) do
  redis.call('ZADD', KEYS[1], untilMs, worker)
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now))) do
  redis.call('ZREM', KEYS[1], dead)
  redis.call('HDEL', KEYS[2], dead)
end
return 1
`);

const aliveScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', now), '+inf')
`);

/** A worker's load on one queue. */
export interface WorkerLoad {
  /** Running requests. */
  readonly active: number;
  /** Embedding inputs waiting in the worker for a call to a vendor. */
  readonly waitingInputs: number;
  /** How many of its slots are for accounts with much work running. */
  readonly bulkRuns: number;
  /** How many of the worker's parts (such as `taking chats`) have failures that last until somebody fixes them. */
  readonly faults: number;
}

/** The sums of a queue's live workers. */
export interface QueueLoad extends WorkerLoad {
  readonly workers: number;
}

/** Which workers are alive, and the load of each, by queue. */
export class WorkerRegistryStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async beat(
    queue: QueueName,
    workerId: string,
    { active, waitingInputs, bulkRuns, faults }: WorkerLoad,
  ): Promise<void> {
    const keys = [redisKeys.workers(queue), redisKeys.workerLoads(queue)];
    const load = `${active} ${waitingInputs} ${bulkRuns} ${faults}`;
    await heartbeatScript.run(this.#redis, keys, [workerId, heartbeatLifetimeMs, load]);
  }

  async leave(queue: QueueName, workerId: string): Promise<void> {
    await this.#redis.zrem(redisKeys.workers(queue), workerId);
    await this.#redis.hdel(redisKeys.workerLoads(queue), workerId);
  }

  async findAlive(queue: QueueName): Promise<Set<string>> {
    const ids = await callRedis(() => aliveScript.run(this.#redis, [redisKeys.workers(queue)], []));
    return new Set(ids as string[]);
  }

  /** The total load of a queue's live workers. */
  async sumLoads(queue: QueueName): Promise<QueueLoad> {
    const [alive, loads] = await Promise.all([
      this.findAlive(queue),
      callRedis(() => this.#redis.hgetall(redisKeys.workerLoads(queue))),
    ]);
    const loadsOfAlive = [...alive].map((id) => (loads[id] ?? '').split(' '));
    const sum = (index: number): number =>
      loadsOfAlive.reduce((total, numbers) => total + Number(numbers[index] ?? 0), 0);
    return {
      workers: alive.size,
      active: sum(0),
      waitingInputs: sum(1),
      bulkRuns: sum(2),
      faults: sum(3),
    };
  }
}
