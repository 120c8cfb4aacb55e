import { callRedis } from '../../shared/platform/redis/redis-client.ts';
import { createDrainedError } from '../../shared/work/queue/drained-request.ts';
import { queueOfModel, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { ControlMessage } from '../../shared/work/replies/worker-control.ts';
import type { RunningDeps } from '../job-deps.ts';

export type DrainRequest = Extract<ControlMessage, { action: 'drain' }>;

export interface DrainSources {
  readonly dependencies: Pick<RunningDeps, 'redis' | 'catalog' | 'routing' | 'embeddings'>;
  /** Cancels the durable jobs of a queue that wait for a call slot. @returns how many */
  readonly cancelJobs: (queue: QueueName) => number;
}

/** How long the operator's command may take to read the reply. */
const replySeconds = 60;

/** Cancels the requests and durable jobs of a queue that wait in this worker for a call slot, and replies how many. */
export async function cancelWaiting(
  { dependencies, cancelJobs }: DrainSources,
  { queue, reply }: DrainRequest,
): Promise<void> {
  const { redis, catalog, routing, embeddings } = dependencies;
  const { limiter } = routing;
  const isOfQueue = (id: string): boolean => {
    const model = catalog.find(id);
    return model !== undefined && queueOfModel(model.type) === queue;
  };
  const jobs = cancelJobs(queue);
  // If one call for embeddings fails, so do all requests that it could have been for.
  const merged = limiter
    .listWaiting()
    .filter(({ model, callClass }) => callClass === 'interactive' && isOfQueue(model))
    .reduce((sum, { model }) => sum + embeddings.countWaiting(model, 'interactive').waiting, 0);
  const calls = limiter.failWaiting('interactive', isOfQueue, createDrainedError());
  const requests = queue === 'embedding' ? merged : calls;
  await callRedis(() =>
    redis.multi().rpush(reply, JSON.stringify({ requests, jobs })).expire(reply, replySeconds).exec(),
  );
}
