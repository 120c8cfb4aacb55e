import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { batchStatuses } from '../../shared/contract/batch-terms.ts';
import type { ProcessMetrics } from '../../shared/platform/metrics/process-metrics.ts';
import type { RecentReading } from './recent-reading.ts';
import type { Demand, WorkDemand } from '../../shared/work/demand/demand.ts';
import { callClasses } from '../../shared/work/queue/call-class.ts';
import { queueNames, queueOfModel } from '../../shared/work/queue/job-kinds.ts';

const workLabels = ['queue', 'model', 'class'] as const;

const workGauges: readonly (readonly [name: string, help: string, value: (work: WorkDemand) => number])[] = [
  [
    'work_waiting',
    'Requests, durable jobs and lines of batches that do not run yet, wherever they wait.',
    ({ waiting }) => waiting,
  ],
  [
    'work_waiting_for_slot',
    'The part of the waiting work that a worker has taken and that waits for the limit of its vendor.',
    ({ waitingForSlot }) => waitingForSlot,
  ],
  ['work_running', 'Requests, durable jobs and lines of batches that run.', ({ running }) => running],
  [
    'work_oldest_waiting_seconds',
    'How long the first of the waiting work has waited.',
    ({ oldestMs }) => oldestMs / 1_000,
  ],
];

export interface DemandMetricsSources {
  readonly demand: RecentReading<Demand>;
  readonly catalog: Pick<CatalogStore, 'current'>;
}

/**
 * Shows the work of the whole gateway. Each process that does so reads the same figures, so they must not be added up.
 */
export function watchDemand(metrics: ProcessMetrics, { demand, catalog }: DemandMetricsSources): void {
  for (const [name, help, valueOf] of workGauges)
    metrics.gauge(
      {
        name,
        help,
        aggregator: 'first',
        async collect() {
          this.reset();
          await demand.use(({ work }) => {
            // Work that ends must not leave a gap in a chart.
            for (const { id, type } of catalog.current.models)
              for (const callClass of callClasses)
                this.set({ queue: queueOfModel(type), model: id, class: callClass }, 0);
            for (const one of work) {
              const { queue, model, callClass } = one;
              this.inc({ queue, model, class: callClass }, valueOf(one));
            }
          });
        },
      },
      workLabels,
    );
  metrics.gauge(
    {
      name: 'workers',
      aggregator: 'first',
      help: 'Workers that take work off a queue, by the version that they run.',
      async collect() {
        this.reset();
        await demand.use(({ queues }) => {
          for (const queue of queueNames) {
            for (const [version, count] of queues[queue].versions) this.set({ queue, version }, count);
            if (queues[queue].workers === 0) this.set({ queue, version: 'none' }, 0);
          }
        });
      },
    },
    ['queue', 'version'],
  );
  metrics.gauge(
    {
      name: 'batches',
      aggregator: 'first',
      help: 'Batches by status: the unfinished ones, and those that have ended since the beginning.',
      async collect() {
        this.reset();
        await demand.use(({ batches }) => {
          for (const status of batchStatuses) this.set({ status }, batches.get(status) ?? 0);
        });
      },
    },
    ['status'],
  );
}
