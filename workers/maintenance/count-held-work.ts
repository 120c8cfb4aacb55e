import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { callClasses, type CallClass } from '../../shared/work/queue/call-class.ts';
import type { HeldCounts, HeldWork } from '../../shared/work/queue/held-work.ts';
import { queueOfModel, type QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { EmbeddingSchedulers } from '../embeddings/embedding-schedulers.ts';
import type { WorkerRuns } from '../intake/worker-runs.ts';
import type { CallTally } from '../routing/call-tally.ts';
import type { RouteLimiter, WaitingCalls } from '../routing/route-limiter.ts';

export interface HeldWorkSources {
  readonly catalog: Pick<CatalogStore, 'current' | 'find'>;
  readonly runs: Pick<WorkerRuns, 'countByModel'>;
  readonly limiter: Pick<RouteLimiter, 'listWaiting'>;
  readonly tally: Pick<CallTally, 'of'>;
  readonly embeddings: Pick<EmbeddingSchedulers, 'countWaiting'>;
}

/** Counts what this worker has taken, by queue, model and class. What waits for a call slot is counted apart. */
export function countHeldWork(
  { catalog, runs, limiter, tally, embeddings }: HeldWorkSources,
  queues: Iterable<QueueName>,
): ReadonlyMap<QueueName, HeldWork> {
  const byModel = runs.countByModel();
  const waiting = limiter.listWaiting();
  return new Map(
    Array.from(queues, (queue) => {
      const held = new Map<string, Partial<Record<CallClass, HeldCounts>>>();
      for (const { id, type } of catalog.current.models) {
        if (queueOfModel(type) !== queue) continue;
        const counts: Partial<Record<CallClass, HeldCounts>> = {};
        for (const callClass of callClasses) {
          const calls = waiting.find((one) => one.model === id && one.callClass === callClass) ?? null;
          const taken = callClass === 'batch' ? tally.of(id, 'batch') : (byModel[callClass].get(id) ?? 0);
          const one =
            queue === 'embedding'
              ? countEmbeddings(embeddings.countWaiting(id, callClass), taken, calls)
              : countCalls(taken, calls);
          if (one.running + one.waiting > 0) counts[callClass] = one;
        }
        if (Object.keys(counts).length > 0) held.set(id, counts);
      }
      return [queue, held] as const;
    }),
  );
}

/** Each request makes one call at a time. */
function countCalls(taken: number, calls: WaitingCalls | null): HeldCounts {
  const waiting = calls?.count ?? 0;
  return { running: Math.max(0, taken - waiting), waiting, oldestMs: calls?.oldestMs ?? 0 };
}

/** Requests share calls. They wait for a slot if any call of theirs does; otherwise they are about to run. */
function countEmbeddings(requests: HeldCounts, taken: number, calls: WaitingCalls | null): HeldCounts {
  const all = Math.max(taken, requests.running + requests.waiting);
  if (calls === null) return { running: all, waiting: 0, oldestMs: 0 };
  const { waiting } = requests;
  return { running: all - waiting, waiting, oldestMs: Math.max(calls.oldestMs, requests.oldestMs) };
}
