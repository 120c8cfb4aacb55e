import type { AdmittedRequest } from '../../shared/money/admitted-request.ts';
import { secondsBuckets, type ProcessMetrics } from '../../shared/platform/metrics/process-metrics.ts';
import type { QueueName } from '../../shared/work/queue/job-kinds.ts';
import type { RequestFacts } from '../../shared/work/replies/request-facts.ts';

/** Measures how long requests and durable jobs wait until a vendor is called for them. */
export class RunMetrics {
  readonly #waits;
  readonly #queueOf: (model: string) => QueueName | null;

  constructor(metrics: ProcessMetrics, queueOf: (model: string) => QueueName | null) {
    this.#queueOf = queueOf;
    this.#waits = metrics.histogram(
      {
        name: 'queue_wait_seconds',
        help: 'Time from admission to the first call to a vendor, with the wait for its slot.',
        buckets: [...secondsBuckets.waiting],
      },
      ['queue', 'model', 'class'],
    );
  }

  note(
    { model, jobAttempt }: Pick<AdmittedRequest, 'model' | 'jobAttempt'>,
    { queueWaitMs }: Pick<RequestFacts, 'queueWaitMs'>,
  ): void {
    const queue = this.#queueOf(model);
    if (queueWaitMs === null || queue === null) return;
    const callClass = jobAttempt === undefined ? 'interactive' : 'job';
    this.#waits.observe({ queue, model, class: callClass }, queueWaitMs / 1_000);
  }
}
