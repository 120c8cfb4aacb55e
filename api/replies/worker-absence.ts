import type { QueueName } from '../../shared/queue/job-kinds.ts';
import { heartbeatLifetimeMs } from '../../shared/queue/heartbeat-times.ts';

/** Measures how long each queue has been without a live worker. Only queues with pending replies are tracked. */
export class WorkerAbsence {
  readonly #nowMs: () => number;
  readonly #lastAliveAtMs = new Map<QueueName, number>();
  /** Until this time, a live worker may not yet have sent its first heartbeat since the last Redis outage. */
  #unknownUntilMs = -Infinity;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Starts tracking a queue. */
  track(queue: QueueName): void {
    if (!this.#lastAliveAtMs.has(queue)) this.#lastAliveAtMs.set(queue, this.#nowMs());
  }

  /** Stops tracking all other queues. */
  retainOnly(queues: ReadonlySet<QueueName>): void {
    for (const queue of this.#lastAliveAtMs.keys()) if (!queues.has(queue)) this.#lastAliveAtMs.delete(queue);
  }

  /**
   * Restarts the measurement after a Redis outage. Workers continue to run during the outage, and settle their requests
   * when Redis is back.
   */
  reset(): void {
    const nowMs = this.#nowMs();
    for (const queue of this.#lastAliveAtMs.keys()) this.#lastAliveAtMs.set(queue, nowMs);
    this.#unknownUntilMs = nowMs + heartbeatLifetimeMs;
  }

  /** @returns how long no worker has served the queue (ms); null if that is currently unknown */
  findUnservedMs(queue: QueueName, alive: ReadonlySet<string>): number | null {
    const nowMs = this.#nowMs();
    if (alive.size > 0) this.#lastAliveAtMs.set(queue, nowMs);
    return nowMs < this.#unknownUntilMs ? null : nowMs - (this.#lastAliveAtMs.get(queue) ?? nowMs);
  }
}
