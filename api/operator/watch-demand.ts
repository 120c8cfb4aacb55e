import type { ProcessMetrics } from '../../shared/platform/metrics/process-metrics.ts';
import type { RecentReading } from './recent-reading.ts';
import type { Demand, WorkDemand } from '../../shared/work/demand/demand.ts';
import { queueNames } from '../../shared/work/queue/job-kinds.ts';

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

/**
 * Shows the work of the whole gateway. Each process that does so reads the same figures, so they must not be added up.
 */
export function watchDemand(metrics: ProcessMetrics, demand: RecentReading<Demand>): void {
  for (const [name, help, valueOf] of workGauges)
    metrics.gauge(
      {
        name,
        help,
        async collect() {
          this.reset();
          await demand.use(({ work }) => {
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
      help: 'Batches by status: the unfinished ones, and those that have ended since the beginning.',
      async collect() {
        this.reset();
        await demand.use(({ batches }) => {
          for (const [status, count] of batches) this.set({ status }, count);
        });
      },
    },
    ['status'],
  );
}
