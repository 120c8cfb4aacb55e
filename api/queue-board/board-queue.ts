import { BaseAdapter } from '@bull-board/api/dist/queueAdapters/base.js';
import { clusterInfo, isCluster } from '@bull-board/api/dist/queueAdapters/clusterInfo.js';
import type { JobCounts, JobStatus, QueueJob, Status } from '@bull-board/api/dist/types.js';
import type { JobType, Queue } from 'bullmq';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { BoardJob } from './board-job.ts';
import type { BoardItem } from './describe-item.ts';

/** The states that items of our queues have. */
const states = ['active', 'waiting', 'prioritized', 'completed', 'failed', 'delayed'] as const;

/**
 * One of our queues, as the board reads it: counts, and items without what callers wrote. It has no code that changes a
 * queue, and it does not read what costs a round trip and is the same for all our queues.
 */
export class BoardQueue extends BaseAdapter {
  readonly #queue: Queue<BoardItem>;
  readonly #redis: RedisClient;

  constructor(queue: Queue<BoardItem>, redis: RedisClient) {
    super('bullmq', { readOnlyMode: true });
    this.#queue = queue;
    this.#redis = redis;
  }

  getName(): string {
    return this.#queue.name;
  }

  async getJobCounts(): Promise<JobCounts> {
    return await this.#queue.getJobCounts(...states);
  }

  async getJobs(statuses: JobStatus[], start?: number, end?: number): Promise<QueueJob[]> {
    const types = statuses.filter((status): status is JobStatus & JobType => status !== 'paused');
    const jobs = await this.#queue.getJobs(types, start, end);
    // An item may be removed between the reading of its list and its own.
    return jobs.filter((job) => job !== undefined).map((job) => new BoardJob(job));
  }

  async getJob(id: string): Promise<QueueJob | null> {
    const job = await this.#queue.getJob(id);
    return job === undefined ? null : new BoardJob(job);
  }

  async isPaused(): Promise<boolean> {
    return await this.#queue.isPaused();
  }

  async getRedisInfo(): Promise<string | null> {
    return isCluster(this.#redis) ? await clusterInfo(this.#redis) : await this.#redis.info();
  }

  getStatuses(): Status[] {
    return ['latest', ...states] as Status[];
  }

  getJobStatuses(): JobStatus[] {
    return [...states] as JobStatus[];
  }

  // We use neither schedulers nor flows, nor BullMQ's metrics, logs and limits.
  getJobLogs = async (): Promise<string[]> => await Promise.resolve([]);
  getJobSchedulers = async (): Promise<never[]> => await Promise.resolve([]);
  getJobSchedulersCount = async (): Promise<number> => await Promise.resolve(0);
  getGlobalConcurrency = async (): Promise<null> => await Promise.resolve(null);
  getMetrics = async () =>
    await Promise.resolve({ meta: { count: 0, prevTS: 0, prevCount: 0 }, data: [], count: 0 });
  /** The board calls these two for queues of BullMQ, without declaring them. */
  getQueueQualifiedName = (): string => this.#queue.qualifiedName;
  getFlowProducer = async (): Promise<null> => await Promise.resolve(null);

  clean = refuse;
  addJob = refuse;
  pause = refuse;
  resume = refuse;
  empty = refuse;
  obliterate = refuse;
  promoteAll = refuse;
  removeJobScheduler = refuse;
  updateJobScheduler = refuse;
  runJobSchedulerNow = refuse;
  setGlobalConcurrency = refuse;
}

/** The board calls nothing that changes a queue in read-only mode. */
async function refuse(): Promise<never> {
  return await Promise.reject(new Error('The queue board is read-only.'));
}
