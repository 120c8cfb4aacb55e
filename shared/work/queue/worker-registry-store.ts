import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys } from '../../platform/redis/redis-keys.ts';
import { queueNames, type QueueName } from './job-kinds.ts';
import { decodeHeldWork, encodeHeldWork, type HeldWork } from './held-work.ts';
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
  /** How many requests it runs at a time. */
  readonly concurrency: number;
  /** Requests, jobs and lines that ended within the last minute. */
  readonly endedPerMinute: number;
  /** The version of the product that it runs. */
  readonly version: string;
  readonly held: HeldWork;
}

/** The sums of a queue's live workers. */
export interface QueueLoad extends Pick<WorkerLoad, SummedField> {
  readonly workers: number;
  /** How many of the workers take work off the queue. */
  readonly taking: number;
}

type SummedField = 'active' | 'waitingInputs' | 'bulkRuns' | 'faults';

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
  readonly load: WorkerLoad;
}

/** As registered, with its load as text. */
interface LiveEntry extends Omit<LiveWorker, 'load'> {
  readonly text: string;
}

/** What workers have taken, and what no worker could take yet. */
export interface RegisteredWork {
  readonly workers: Readonly<Record<QueueName, readonly WorkerLoad[]>>;
  /** What waits in api processes for a share of the workers' capacity. */
  readonly waitingInApis: readonly { readonly queue: QueueName; readonly work: HeldWork }[];
}

/** Under this name, api processes are registered like the workers of a queue. */
const apiQueue = 'api';

const processRoles = ['api', 'worker'] as const;
export type ProcessRole = (typeof processRoles)[number];

/** A process that runs, as operators see it. */
export interface RunningProcess {
  /** The version and the build, as in `fullVersion`. */
  readonly build: string;
  /** Unix milliseconds. */
  readonly startedAtMs: number;
}

/** Under this name, all processes of a role are registered, whatever work they take. */
const registryOf = (role: ProcessRole): string => `process-${role}`;

const takesWork = ({ load }: LiveWorker): boolean => load.isTaking;

/** The rest of a load, as JSON: concurrency, ended per minute, version, held work. */
type EncodedRest = readonly [number, number, string, ReturnType<typeof encodeHeldWork>];

/** Workers of other versions read the fields that they know: what is new is appended. */
function encodeLoad(load: WorkerLoad): string {
  const { active, waitingInputs, bulkRuns, faults, isTaking } = load;
  const { concurrency, endedPerMinute, version, held } = load;
  const rest: EncodedRest = [concurrency, endedPerMinute, version, encodeHeldWork(held)];
  return `${active} ${waitingInputs} ${bulkRuns} ${faults} ${isTaking ? 1 : 0} ${JSON.stringify(rest)}`;
}

function decodeLoad(text: string): WorkerLoad {
  const [active, waitingInputs, bulkRuns, faults, isTaking, ...rest] = text.split(' ');
  const [concurrency, endedPerMinute, version, held] = JSON.parse(
    rest.join(' ') || '[0, 0, "unknown", {}]',
  ) as EncodedRest;
  return {
    active: Number(active),
    waitingInputs: Number(waitingInputs ?? 0),
    bulkRuns: Number(bulkRuns ?? 0),
    faults: Number(faults ?? 0),
    isTaking: isTaking === '1',
    concurrency,
    endedPerMinute,
    version,
    held: decodeHeldWork(held),
  };
}

function decodeApiLoad(text: string): RegisteredWork['waitingInApis'] {
  const byQueue = JSON.parse(text || '{}') as Partial<Record<QueueName, ReturnType<typeof encodeHeldWork>>>;
  return queueNames.flatMap((queue) => {
    const encoded = byQueue[queue];
    return encoded === undefined ? [] : [{ queue, work: decodeHeldWork(encoded) }];
  });
}

function toProcess(text: string): RunningProcess {
  const blank = text.indexOf(' ');
  return { build: text.slice(blank + 1), startedAtMs: Number(text.slice(0, blank)) };
}

/** Which workers are alive, and the load of each, by queue. */
export class WorkerRegistryStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  async beat(queue: QueueName, workerId: string, load: WorkerLoad): Promise<void> {
    await this.#beat(queue, workerId, encodeLoad(load));
  }

  async leave(queue: QueueName, workerId: string): Promise<void> {
    await this.#leave(queue, workerId);
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
        faults: workers.reduce((sum, { load }) => sum + load.faults, 0),
      };
    });
  }

  /** Reports what waits in an api process for a share of the workers' capacity, by queue. */
  async beatApi(apiId: string, waiting: ReadonlyMap<QueueName, HeldWork>): Promise<void> {
    const byQueue = Array.from(waiting, ([queue, work]) => [queue, encodeHeldWork(work)]);
    await this.#beat(apiQueue, apiId, JSON.stringify(Object.fromEntries(byQueue)));
  }

  async leaveApi(apiId: string): Promise<void> {
    await this.#leave(apiQueue, apiId);
  }

  /** Reports that a process runs. */
  async beatProcess(role: ProcessRole, id: string, { build, startedAtMs }: RunningProcess): Promise<void> {
    await this.#beat(registryOf(role), id, `${startedAtMs} ${build}`);
  }

  async leaveProcess(role: ProcessRole, id: string): Promise<void> {
    await this.#leave(registryOf(role), id);
  }

  /** The processes that run, by role. Those of earlier releases are missing. One round trip. */
  async readProcesses(): Promise<Readonly<Record<ProcessRole, readonly RunningProcess[]>>> {
    const entries = await this.#readEntries(processRoles.map(registryOf));
    const processes = processRoles.map((role, i) => [role, entries[i]!.map(({ text }) => toProcess(text))]);
    return Object.fromEntries(processes) as Record<ProcessRole, RunningProcess[]>;
  }

  /** The loads of all live workers, and what waits in api processes. One round trip. */
  async readAll(): Promise<RegisteredWork> {
    const entries = await this.#readEntries([...queueNames, apiQueue]);
    const loads = queueNames.map((queue, i) => [queue, entries[i]!.map(({ text }) => decodeLoad(text))]);
    return {
      workers: Object.fromEntries(loads) as RegisteredWork['workers'],
      waitingInApis: entries.at(-1)!.flatMap(({ text }) => decodeApiLoad(text)),
    };
  }

  /** The total load of a queue's live workers. */
  async sumLoads(queue: QueueName): Promise<QueueLoad> {
    const [workers] = await this.#read([queue]);
    const sum = (field: SummedField): number => workers!.reduce((total, { load }) => total + load[field], 0);
    return {
      workers: workers!.length,
      taking: workers!.filter(takesWork).length,
      active: sum('active'),
      waitingInputs: sum('waitingInputs'),
      bulkRuns: sum('bulkRuns'),
      faults: sum('faults'),
    };
  }

  async #beat(name: string, id: string, load: string): Promise<void> {
    await heartbeatScript.run(this.#redis, {
      workers: redisKeys.workers(name),
      loads: redisKeys.workerLoads(name),
      workerId: id,
      lifetimeMs: liveness.worker.deadMs,
      load,
    });
  }

  async #leave(name: string, id: string): Promise<void> {
    await this.#redis.zrem(redisKeys.workers(name), id);
    await this.#redis.hdel(redisKeys.workerLoads(name), id);
  }

  async #read(queues: readonly QueueName[]): Promise<LiveWorker[][]> {
    return (await this.#readEntries(queues)).map((entries) =>
      entries.map(({ id, heartbeatAgoMs, text }) => ({ id, heartbeatAgoMs, load: decodeLoad(text) })),
    );
  }

  async #readEntries(queues: readonly string[]): Promise<LiveEntry[][]> {
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
        text: String(fields[i * 3 + 2]),
      })),
    );
  }
}
