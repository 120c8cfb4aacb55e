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

/**
 * Reads several queues, two keys each. If Redis's clock stepped back, it shortens the entries like a heartbeat: while no
 * worker lives, there are no heartbeats.
 */
const readScript = new RedisScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local untilMs = string.format('%.0f', now + tonumber(ARGV[1]))
local queues = {}
for i = 1, #KEYS, 2 do
  for _, worker in ipairs(redis.call('ZRANGEBYSCORE', KEYS[i], '(' .. untilMs, '+inf')) do
    redis.call('ZADD', KEYS[i], untilMs, worker)
  end
  local alive = redis.call('ZRANGEBYSCORE', KEYS[i], string.format('%.0f', now), '+inf', 'WITHSCORES')
  local workers = {}
  for j = 1, #alive, 2 do
    workers[#workers + 1] = alive[j]
    workers[#workers + 1] = untilMs - tonumber(alive[j + 1])
    workers[#workers + 1] = redis.call('HGET', KEYS[i + 1], alive[j]) or ''
  end
  queues[#queues + 1] = workers
end
return queues
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
  /** Whether it takes work off this queue. A worker that cannot may still finish what it took. */
  readonly isTaking: boolean;
}

/** The sums of a queue's live workers. */
export interface QueueLoad extends Omit<WorkerLoad, 'isTaking'> {
  readonly workers: number;
  /** How many of the workers take work off the queue. */
  readonly taking: number;
}

/** A queue's live workers. */
export interface QueueWorkers {
  readonly alive: ReadonlySet<string>;
  /** How long ago the last heartbeat of a worker that takes work was (ms); null if no such worker is alive. */
  readonly servedAgoMs: number | null;
}

interface LiveWorker {
  readonly id: string;
  readonly heartbeatAgoMs: number;
  /** The numbers of its load, and whether it takes work. */
  readonly load: readonly string[];
}

/** A worker of an earlier version does not say whether it takes work. */
const takesWork = ({ load }: LiveWorker): boolean => load[4] !== '0';

/** Which workers are alive, and the load of each, by queue. */
export class WorkerRegistryStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async beat(
    queue: QueueName,
    workerId: string,
    { active, waitingInputs, bulkRuns, faults, isTaking }: WorkerLoad,
  ): Promise<void> {
    const keys = [redisKeys.workers(queue), redisKeys.workerLoads(queue)];
    const load = `${active} ${waitingInputs} ${bulkRuns} ${faults} ${isTaking ? 1 : 0}`;
    await heartbeatScript.run(this.#redis, keys, [workerId, heartbeatLifetimeMs, load]);
  }

  async leave(queue: QueueName, workerId: string): Promise<void> {
    await this.#redis.zrem(redisKeys.workers(queue), workerId);
    await this.#redis.hdel(redisKeys.workerLoads(queue), workerId);
  }

  async findAlive(queue: QueueName): Promise<Set<string>> {
    const [workers] = await this.#read([queue]);
    return new Set(workers!.map(({ id }) => id));
  }

  /** The live workers of these queues, in the same order. One round trip. */
  async findWorkers(queues: readonly QueueName[]): Promise<QueueWorkers[]> {
    return (await this.#read(queues)).map((workers) => {
      const taking = workers.filter(takesWork);
      return {
        alive: new Set(workers.map(({ id }) => id)),
        servedAgoMs:
          taking.length === 0 ? null : Math.min(...taking.map(({ heartbeatAgoMs }) => heartbeatAgoMs)),
      };
    });
  }

  /** The total load of a queue's live workers. */
  async sumLoads(queue: QueueName): Promise<QueueLoad> {
    const [workers] = await this.#read([queue]);
    const sum = (index: number): number =>
      workers!.reduce((total, { load }) => total + Number(load[index] ?? 0), 0);
    return {
      workers: workers!.length,
      taking: workers!.filter(takesWork).length,
      active: sum(0),
      waitingInputs: sum(1),
      bulkRuns: sum(2),
      faults: sum(3),
    };
  }

  async #read(queues: readonly QueueName[]): Promise<LiveWorker[][]> {
    const keys = queues.flatMap((queue) => [redisKeys.workers(queue), redisKeys.workerLoads(queue)]);
    const reply = await callRedis(() => readScript.run(this.#redis, keys, [heartbeatLifetimeMs]));
    return (reply as (string | number)[][]).map((fields) =>
      Array.from({ length: fields.length / 3 }, (_, i) => ({
        id: String(fields[i * 3]),
        heartbeatAgoMs: Number(fields[i * 3 + 1]),
        load: String(fields[i * 3 + 2]).split(' '),
      })),
    );
  }
}
