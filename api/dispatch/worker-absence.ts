import type { QueueName } from '../../shared/queue/job-kinds.ts';
import { heartbeatLifetimeMs } from '../../shared/queue/heartbeat-times.ts';

/** How long each queue has been without a live worker. Only queues that somebody waits for are looked at. */
export class WorkerAbsence {
  readonly #nowMs: () => number;
  readonly #lastAliveAtMs = new Map<QueueName, number>();
  /** Until then workers that live may not have beaten again after an outage of Redis. */
  #unsureUntilMs = -Infinity;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** From now on somebody waits for this queue. */
  await(queue: QueueName): void {
    if (!this.#lastAliveAtMs.has(queue)) this.#lastAliveAtMs.set(queue, this.#nowMs());
  }

  /** Nobody waits for any other queue. */
  keep(queues: ReadonlySet<QueueName>): void {
    for (const queue of this.#lastAliveAtMs.keys()) if (!queues.has(queue)) this.#lastAliveAtMs.delete(queue);
  }

  /** An outage of Redis says nothing of workers: they go on, and settle once it is back. */
  forget(): void {
    const nowMs = this.#nowMs();
    for (const queue of this.#lastAliveAtMs.keys()) this.#lastAliveAtMs.set(queue, nowMs);
    this.#unsureUntilMs = nowMs + heartbeatLifetimeMs;
  }

  /** @returns for how long no worker has served the queue (ms); null where that cannot be said now */
  measure(queue: QueueName, alive: ReadonlySet<string>): number | null {
    const nowMs = this.#nowMs();
    if (alive.size > 0) this.#lastAliveAtMs.set(queue, nowMs);
    return nowMs < this.#unsureUntilMs ? null : nowMs - (this.#lastAliveAtMs.get(queue) ?? nowMs);
  }
}
