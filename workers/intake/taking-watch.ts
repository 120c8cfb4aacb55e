import type { QueueName } from '../../shared/work/queue/job-kinds.ts';

/**
 * How long an attempt to take work may be pending, or attempts may fail, until the worker no longer counts as taking
 * work. Longer than any blocking wait, and than a reconnect to Redis takes.
 */
const maxPendingMs = 20_000;

interface Attempts {
  /** When the pending attempts began, oldest first. */
  readonly pending: Map<object, number>;
  failingSinceMs: number | null;
}

/**
 * Whether this worker still takes work off its queues. Its heartbeats alone do not show that: they use another
 * connection, and another user's permissions may be missing.
 */
export class TakingWatch {
  readonly #byQueue = new Map<QueueName, Attempts>();
  readonly #nowMs: () => number;

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Runs an attempt to take work. It succeeds even if there is none. */
  async observe<T>(queue: QueueName, take: () => Promise<T>): Promise<T> {
    const attempts = this.#byQueue.get(queue) ?? { pending: new Map(), failingSinceMs: null };
    this.#byQueue.set(queue, attempts);
    const attempt = {};
    attempts.pending.set(attempt, this.#nowMs());
    try {
      const taken = await take();
      attempts.failingSinceMs = null;
      return taken;
    } catch (error) {
      attempts.failingSinceMs ??= this.#nowMs();
      throw error;
    } finally {
      attempts.pending.delete(attempt);
    }
  }

  isTaking(queue: QueueName): boolean {
    const attempts = this.#byQueue.get(queue);
    if (attempts === undefined) return true;
    const [oldestMs = Infinity] = attempts.pending.values();
    return this.#nowMs() - Math.min(oldestMs, attempts.failingSinceMs ?? Infinity) <= maxPendingMs;
  }
}
