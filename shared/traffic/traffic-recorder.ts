import { isRedisAway } from '../redis/redis-client.ts';
import type { Running } from '../runtime/lifecycle.ts';
import type { Logger } from '../runtime/logger.ts';
import { runInBackground } from '../runtime/run-in-background.ts';
import type { TrafficStore } from './traffic-store.ts';
import { TrafficSums, type SettledRequest } from './traffic-sums.ts';

const flushIntervalMs = 1_000;

/**
 * Notes what a process settles, for the public figures: in memory, and from there to Redis once a second and at the
 * stop, so that no request waits for it. These are figures, not money: a process that is killed loses its last second
 * of them, and a write whose answer was lost is counted twice. While Redis is away the sums go on growing in number
 * only by models; they are written when it is back, as traffic of then.
 */
export class TrafficRecorder implements Running {
  readonly #store: Pick<TrafficStore, 'record'>;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  #sums = new TrafficSums();
  #flushing: Promise<void> | null = null;

  constructor(store: Pick<TrafficStore, 'record'>, log: Logger) {
    this.#store = store;
    this.#log = log;
    this.#timer = setInterval(
      () => runInBackground(this.flush(), 'writing the traffic figures', log),
      flushIntervalMs,
    );
    this.#timer.unref();
  }

  note(request: SettledRequest): void {
    this.#sums.add(request);
  }

  /** Writes what was noted so far, or waits for the writing that is under way. Never rejects. */
  async flush(): Promise<void> {
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = null;
    });
    await this.#flushing;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.flush();
  }

  async #write(): Promise<void> {
    if (this.#sums.isEmpty) return;
    const sums = this.#sums;
    this.#sums = new TrafficSums();
    try {
      await this.#store.record(sums);
    } catch (error) {
      if (isRedisAway(error)) {
        this.#sums.addAll(sums);
        this.#log.debug({ err: error }, 'the traffic figures wait for Redis');
        return;
      }
      // What Redis refuses once it would refuse for ever, and all that follows with it.
      this.#log.error(
        { err: error, requests: sums.totals.requests },
        'traffic figures were refused and are lost',
      );
    }
  }
}
