import { secondsBuckets, type ProcessMetrics } from '../../shared/platform/metrics/process-metrics.ts';
import type { EndedCall } from './call-observer.ts';

/** Counts the calls of a worker to vendors. */
export class CallMetrics {
  readonly #calls;
  readonly #durations;
  readonly #slotWaits;

  constructor(metrics: ProcessMetrics) {
    this.#calls = metrics.counter(
      {
        name: 'upstream_calls_total',
        help: 'Calls to vendors by how they ended. `kind` is `success`, `cancelled` or the kind of failure.',
      },
      ['upstream', 'model', 'kind'],
    );
    this.#durations = metrics.histogram(
      {
        name: 'upstream_call_duration_seconds',
        help: 'Time that a call to a vendor took, with its response.',
        buckets: [...secondsBuckets.requests],
      },
      ['upstream', 'model', 'kind'],
    );
    this.#slotWaits = metrics.histogram(
      {
        name: 'call_slot_wait_seconds',
        help: 'Time that a call waited for a slot of its upstream.',
        buckets: [...secondsBuckets.waiting],
      },
      ['upstream', 'model', 'class'],
    );
  }

  note({ model, route, callClass, end, waitedMs, durationMs }: EndedCall): void {
    const upstream = route.upstream.name;
    this.#calls.inc({ upstream, model, kind: end });
    this.#durations.observe({ upstream, model, kind: end }, durationMs / 1_000);
    this.#slotWaits.observe({ upstream, model, class: callClass }, waitedMs / 1_000);
  }
}
