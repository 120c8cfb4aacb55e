import type { ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';
import { ledgerStreamBound } from '../../../shared/money/admit-script.ts';
import type { SystemReading } from './system-reading.ts';

/**
 * Shows parts of the last reading as metrics. Every api process reads the same, so they must not be summed over
 * processes.
 * @param last returns the last reading; null if there is none yet
 */
export function showReading(metrics: ProcessMetrics, last: () => SystemReading | null): void {
  const show = (name: string, help: string, read: (reading: SystemReading) => number | undefined): void => {
    const gauge = metrics.gauge(
      {
        name,
        help,
        aggregator: 'first',
        collect: () => {
          const reading = last();
          // What is unknown must not look like zero.
          gauge.set((reading === null ? undefined : read(reading)) ?? NaN);
        },
      },
      [],
    );
  };
  show('ledger_lag_entries', 'Ledger entries that are not in MongoDB yet.', ({ ledger }) => ledger?.entries);
  show('ledger_lag_seconds', 'The age of the oldest of them; 0 if there is none.', ({ ledger }) =>
    ledger === null ? undefined : ledger.oldestMs / 1_000,
  );
  show(
    'ledger_stream_entries',
    'Ledger entries of the shard that has most of them.',
    ({ ledger }) => ledger?.maxShardEntries,
  );
  metrics
    .gauge(
      {
        name: 'ledger_stream_bound',
        aggregator: 'first',
        help: 'At this many entries of a shard, its requests are refused.',
      },
      [],
    )
    .set(ledgerStreamBound);
  const refused = metrics.gauge(
    {
      name: 'upstream_keys_refused',
      aggregator: 'first',
      help: 'How many of its keys an upstream refuses.',
      collect: () => {
        refused.reset();
        for (const { upstream } of last()?.refusedKeys ?? []) refused.inc({ upstream });
      },
    },
    ['upstream'],
  );
}
