import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys } from '../../platform/redis/redis-keys.ts';
import type { QueueName } from './job-kinds.ts';
import { liveness } from '../../platform/redis/liveness.ts';

const heartbeatScript = new LuaScript(new URL('./beat-worker.lua', import.meta.url), [
  'workers',
  'loads',
  'workerId',
  'lifetimeMs',
  'load',
]);
const readScript = new LuaScript(new URL('./read-workers.lua', import.meta.url), ['lifetimeMs'], {
  itemNames: ['workers', 'loads'],
});

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
  /** How many parts of these workers have failures that last until somebody fixes them. */
  readonly faults: number;
}

interface LiveWorker {
  readonly id: string;
  readonly heartbeatAgoMs: number;
  /** The numbers of its load, and whether it takes work. */
  readonly load: readonly string[];
}

const takesWork = ({ load }: LiveWorker): boolean => load[4] === '1';
/** Adds up one number of the workers' loads. */
const sumOf = (workers: readonly LiveWorker[], index: number): number =>
  workers.reduce((total, { load }) => total + Number(load[index] ?? 0), 0);

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
    await heartbeatScript.run(this.#redis, {
      workers: redisKeys.workers(queue),
      loads: redisKeys.workerLoads(queue),
      workerId,
      lifetimeMs: liveness.worker.deadMs,
      load: `${active} ${waitingInputs} ${bulkRuns} ${faults} ${isTaking ? 1 : 0}`,
    });
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
        faults: sumOf(workers, 3),
      };
    });
  }

  /** The total load of a queue's live workers. */
  async sumLoads(queue: QueueName): Promise<QueueLoad> {
    const [workers] = await this.#read([queue]);
    return {
      workers: workers!.length,
      taking: workers!.filter(takesWork).length,
      active: sumOf(workers!, 0),
      waitingInputs: sumOf(workers!, 1),
      bulkRuns: sumOf(workers!, 2),
      faults: sumOf(workers!, 3),
    };
  }

  async #read(queues: readonly QueueName[]): Promise<LiveWorker[][]> {
    const keys = queues.map((queue) => ({
      workers: redisKeys.workers(queue),
      loads: redisKeys.workerLoads(queue),
    }));
    const values = { lifetimeMs: liveness.worker.deadMs };
    const reply = await callRedis(() => readScript.run(this.#redis, values, keys));
    return (reply as (string | number)[][]).map((fields) =>
      Array.from({ length: fields.length / 3 }, (_, i) => ({
        id: String(fields[i * 3]),
        heartbeatAgoMs: Number(fields[i * 3 + 1]),
        load: String(fields[i * 3 + 2]).split(' '),
      })),
    );
  }
}
