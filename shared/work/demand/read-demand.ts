import type { CatalogStore } from '../../catalog/catalog-store.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../../platform/redis/redis-keys.ts';
import { anyModel } from '../batches/batch-constants.ts';
import { batchQueueOf, type TurnQueue } from '../jobs/job-line.ts';
import { JobTurns } from '../jobs/job-turns-store.ts';
import type { SurveyedModel, TurnSurvey } from '../jobs/running-jobs-script.ts';
import { callClasses, type CallClass } from '../queue/call-class.ts';
import type { HeldCounts } from '../queue/held-work.ts';
import { queueNames, queueOfModel, type QueueName } from '../queue/job-kinds.ts';
import { surveyBull, surveyReady, type WaitingByModel } from '../queue/queue-survey.ts';
import { WorkerRegistryStore, type WorkerLoad } from '../queue/worker-registry-store.ts';
import type { Demand, QueueCapacity, WorkDemand } from './demand.ts';

export interface DemandSources {
  readonly redis: RedisClient;
  readonly catalog: Pick<CatalogStore, 'current' | 'find'>;
}

/** Of those that wait for a model, how many accounts are asked for their oldest job. */
const maxAccounts = 32;

/** What waits in one place, for one model. */
interface Untaken {
  readonly count: number;
  /** Whether a worker could take any of it. Lines of batches that a worker has taken are counted here, too. */
  readonly isTakeable: boolean;
  readonly oldestMs: number;
}

/**
 * Reads what waits and runs, for all api processes and workers together. Two round trips to Redis, whose work does not
 * grow with what waits. It works while no worker is alive.
 * @throws AppError `service_unavailable`
 */
export async function readDemand({ redis, catalog }: DemandSources): Promise<Demand> {
  const turns = new JobTurns(redis);
  const turnQueues: TurnQueue[] = [...queueNames, ...queueNames.map(batchQueueOf)];
  const [{ workers, waitingInApis }, chats, images, embeddings, survey, totals] = await Promise.all([
    callRedis(() => new WorkerRegistryStore(redis).readAll()),
    callRedis(() => surveyReady(redis)),
    callRedis(() => surveyBull(redis, 'image')),
    callRedis(() => surveyBull(redis, 'embedding')),
    turns.survey(turnQueues, maxAccounts),
    readTotals(redis),
  ]);
  const oldest = await readOldest(redis, turnQueues, survey);
  const interactive: Readonly<Record<QueueName, WaitingByModel>> = {
    chat: chats,
    image: images,
    embedding: embeddings,
  };
  const nowMs = Date.now();
  const untaken = (queue: QueueName, callClass: CallClass): Map<string, Untaken> => {
    if (callClass === 'interactive') {
      const queued = mapValues(interactive[queue], ({ count, oldestAtMs }) => ({
        count,
        isTakeable: count > 0,
        oldestMs: Math.max(0, nowMs - oldestAtMs),
      }));
      for (const { work } of waitingInApis.filter((one) => one.queue === queue))
        for (const [model, byClass] of work) {
          const { waiting = 0, oldestMs = 0 } = byClass.interactive ?? {};
          const inApi = { count: waiting, isTakeable: waiting > 0, oldestMs };
          queued.set(model, addUntaken(queued.get(model) ?? nothingWaits, inApi));
        }
      return queued;
    }
    const turnQueue = callClass === 'job' ? queue : batchQueueOf(queue);
    const surveyed = survey.queues[turnQueues.indexOf(turnQueue)]!;
    const waiting = new Map(surveyed.map(({ model, waiting: count }) => [model, count]));
    const counts = callClass === 'job' ? waiting : (totals.lines.get(turnQueue) ?? new Map<string, number>());
    return mapValues(counts, (count, model) => ({
      count,
      // Lines of stopped batches wait under no model.
      isTakeable: (waiting.get(model) ?? 0) + (waiting.get(anyModel) ?? 0) > 0,
      oldestMs: oldest.get(`${turnQueue} ${model}`) ?? 0,
    }));
  };
  const idOf = (name: string): string => catalog.find(name)?.id ?? name;
  const work = queueNames.flatMap((queue) =>
    callClasses.flatMap((callClass) =>
      mergeWork(queue, callClass, { untaken: untaken(queue, callClass), loads: workers[queue], idOf }),
    ),
  );
  const queues = Object.fromEntries(
    queueNames.map((queue) => [queue, sumCapacity(workers[queue])]),
  ) as Record<QueueName, QueueCapacity>;
  const known = new Set(catalog.current.models.map(({ id, type }) => `${queueOfModel(type)} ${id}`));
  return {
    // A model that was removed from the catalog may still have jobs.
    work: work.map((one) => (known.has(`${one.queue} ${one.model}`) ? one : { ...one, model: 'other' })),
    queues,
    batches: totals.statuses,
  };
}

const nothingWaits: Untaken = { count: 0, isTakeable: false, oldestMs: 0 };

const addUntaken = (one: Untaken, other: Untaken): Untaken => ({
  count: one.count + other.count,
  isTakeable: one.isTakeable || other.isTakeable,
  oldestMs: Math.max(one.oldestMs, other.oldestMs),
});

interface MergeOptions {
  readonly untaken: ReadonlyMap<string, Untaken>;
  readonly loads: readonly WorkerLoad[];
  readonly idOf: (name: string) => string;
}

/** Adds what workers have taken to what nobody has. */
function mergeWork(
  queue: QueueName,
  callClass: CallClass,
  { untaken, loads, idOf }: MergeOptions,
): WorkDemand[] {
  const held = new Map<string, HeldCounts>();
  for (const load of loads)
    for (const [model, byClass] of load.held) {
      const counts = byClass[callClass];
      if (counts === undefined) continue;
      const before = held.get(model) ?? { running: 0, waiting: 0, oldestMs: 0 };
      held.set(model, {
        running: before.running + counts.running,
        waiting: before.waiting + counts.waiting,
        oldestMs: Math.max(before.oldestMs, counts.oldestMs),
      });
    }
  const waiting = new Map<string, Untaken>();
  for (const [name, work] of untaken)
    waiting.set(idOf(name), addUntaken(waiting.get(idOf(name)) ?? nothingWaits, work));
  return [...new Set([...held.keys(), ...waiting.keys()])].flatMap((model) => {
    const taken = held.get(model) ?? { running: 0, waiting: 0, oldestMs: 0 };
    const all = waiting.get(model) ?? nothingWaits;
    // The lines of a batch that are not settled include those that a worker has taken.
    const others =
      callClass === 'batch' ? Math.max(0, all.count - taken.running - taken.waiting) : Math.max(0, all.count);
    if (others + taken.waiting + taken.running === 0) return [];
    const untakenCount = all.isTakeable ? others : 0;
    const oldestUntakenMs = untakenCount === 0 ? 0 : all.oldestMs;
    return [
      {
        queue,
        model,
        callClass,
        waiting: others + taken.waiting,
        waitingForSlot: taken.waiting,
        untaken: untakenCount,
        running: taken.running,
        oldestMs: taken.waiting === 0 ? oldestUntakenMs : Math.max(taken.oldestMs, oldestUntakenMs),
        oldestUntakenMs,
      },
    ];
  });
}

function sumCapacity(loads: readonly WorkerLoad[]): QueueCapacity {
  const taking = loads.filter(({ isTaking }) => isTaking);
  const versions = new Map<string, number>();
  for (const { version } of loads) versions.set(version, (versions.get(version) ?? 0) + 1);
  return {
    workers: taking.length,
    capacity: taking.reduce((sum, { concurrency }) => sum + concurrency, 0),
    endedPerMinute: loads.reduce((sum, { endedPerMinute }) => sum + endedPerMinute, 0),
    versions,
  };
}

/** How long the oldest waiting job or batch of each queue and model has waited (ms). */
async function readOldest(
  redis: RedisClient,
  queues: readonly TurnQueue[],
  { nowMs, queues: surveyed }: TurnSurvey,
): Promise<ReadonlyMap<string, number>> {
  const oldest = new Map<string, number>();
  const readAccount = async (
    queue: TurnQueue,
    { model }: SurveyedModel,
    accountId: string,
  ): Promise<void> => {
    const key = queue.startsWith('batch-')
      ? redisKeys.batchesWaiting(accountId, queue, model)
      : redisKeys.jobsWaiting(accountId, queue, model);
    const [, createdAtMs] = await redis.zrange(key, '0', '0', 'WITHSCORES');
    if (createdAtMs === undefined) return;
    const name = `${queue} ${model}`;
    oldest.set(name, Math.max(oldest.get(name) ?? 0, nowMs - Number(createdAtMs)));
  };
  await callRedis(() =>
    Promise.all(
      queues.flatMap((queue, i) =>
        surveyed[i]!.flatMap((model) => model.accountIds.map((id) => readAccount(queue, model, id))),
      ),
    ),
  );
  return oldest;
}

interface BatchTotals {
  readonly statuses: ReadonlyMap<string, number>;
  /** Lines that are not settled, by queue and model. */
  readonly lines: ReadonlyMap<string, ReadonlyMap<string, number>>;
}

async function readTotals(redis: RedisClient): Promise<BatchTotals> {
  const shards = await callRedis(() =>
    Promise.all(
      Array.from({ length: shardCount }, (_, shard) => redis.hgetall(redisKeys.batchTotals(shard))),
    ),
  );
  const statuses = new Map<string, number>();
  const lines = new Map<string, Map<string, number>>();
  for (const [field, text] of shards.flatMap((totals) => Object.entries(totals))) {
    // A batch that was created by an earlier version was not counted.
    const count = Math.max(0, Number(text));
    const [, kind = '', rest = ''] = /^(\w+):(.*)$/s.exec(field) ?? [];
    if (kind === 'status') statuses.set(rest, (statuses.get(rest) ?? 0) + count);
    if (kind !== 'lines') continue;
    const space = rest.indexOf(' ');
    const [queue, model] = [rest.slice(0, space), rest.slice(space + 1)];
    const ofQueue = lines.get(queue) ?? new Map<string, number>();
    lines.set(queue, ofQueue.set(model, (ofQueue.get(model) ?? 0) + count));
  }
  return { statuses, lines };
}

function mapValues<K, V, W>(map: ReadonlyMap<K, V>, convert: (value: V, key: K) => W): Map<K, W> {
  return new Map(Array.from(map, ([key, value]) => [key, convert(value, key)]));
}
