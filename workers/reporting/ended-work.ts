import type { QueueName } from '../../shared/work/queue/job-kinds.ts';

const bucketMs = 5_000;
const buckets = 12;

/** Counts the requests, durable jobs and lines of batches that ended within the last minute. */
export class EndedWork {
  readonly #queueOf: (model: string) => QueueName | null;
  readonly #nowMs: () => number;
  readonly #counts = new Map<QueueName, { readonly sums: number[]; bucket: number }>();

  constructor(queueOf: (model: string) => QueueName | null, nowMs = () => performance.now()) {
    this.#queueOf = queueOf;
    this.#nowMs = nowMs;
  }

  note(model: string): void {
    const queue = this.#queueOf(model);
    if (queue === null) return;
    const { sums, bucket } = this.#advance(queue);
    sums[bucket % buckets]! += 1;
  }

  perMinute(queue: QueueName): number {
    return this.#advance(queue).sums.reduce((sum, count) => sum + count, 0);
  }

  #advance(queue: QueueName): { readonly sums: number[]; readonly bucket: number } {
    const now = Math.floor(this.#nowMs() / bucketMs);
    let counts = this.#counts.get(queue);
    if (counts === undefined) {
      counts = { sums: Array.from({ length: buckets }, () => 0), bucket: now };
      this.#counts.set(queue, counts);
    }
    for (let bucket = Math.max(counts.bucket + 1, now - buckets + 1); bucket <= now; bucket++)
      counts.sums[bucket % buckets] = 0;
    counts.bucket = now;
    return counts;
  }
}
