import { isRedisUnavailable } from '../platform/redis/redis-client.ts';
import type { Running } from '../platform/runtime/lifecycle.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { runInBackground } from '../platform/runtime/run-in-background.ts';
import type { SettledRequest } from './request-sums.ts';

interface Sums<S> {
  readonly requests: number;
  add(request: SettledRequest): void;
  addAll(other: S): void;
  listParts(models: number): Iterable<S>;
}

interface SumsWriterOptions<S> {
  readonly create: () => S;
  readonly store: { record(sums: S): Promise<void> };
  /** What one call of Redis may add: it does nothing else meanwhile. */
  readonly modelsPerRecord: number;
  readonly intervalMs: number;
  readonly log: Logger;
}

/**
 * Sums a process's settled requests in memory and writes the sums to Redis at intervals and at shutdown, so no request waits
 * for it. These are stats, not money: a process that is killed loses those of the last interval, and a write whose reply was
 * lost is counted twice. While Redis is unavailable, the sums in memory grow only with the number of models. They are written
 * when it is available again, as traffic of that time.
 */
export class SumsWriter<S extends Sums<S>> implements Running {
  readonly #options: SumsWriterOptions<S>;
  readonly #timer: NodeJS.Timeout;
  #sums: S;
  #flushing: Promise<void> | null = null;

  constructor(options: SumsWriterOptions<S>) {
    this.#options = options;
    this.#sums = options.create();
    this.#timer = setInterval(
      () => runInBackground(this.flush(), 'writing request stats', options.log),
      options.intervalMs,
    );
    this.#timer.unref();
  }

  note(request: SettledRequest): void {
    this.#sums.add(request);
  }

  /** Writes what has been recorded so far, or waits for the write that is running. Never rejects. */
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
    if (this.#sums.requests === 0) return;
    const sums = this.#sums;
    this.#sums = this.#options.create();
    let isUp = true;
    for (const part of sums.listParts(this.#options.modelsPerRecord)) {
      if (isUp) isUp = await this.#writePart(part);
      if (!isUp) this.#sums.addAll(part);
    }
  }

  /** @returns false if Redis is unavailable, so that the part is still to be written */
  async #writePart(part: S): Promise<boolean> {
    const { store, log } = this.#options;
    try {
      await store.record(part);
      return true;
    } catch (error) {
      if (isRedisUnavailable(error)) {
        log.debug({ err: error }, 'request stats not written yet');
        return false;
      }
      // Redis would reject these sums at every attempt, and all later ones with them.
      log.error({ err: error, requests: part.requests }, 'request stats rejected by Redis and lost');
      return true;
    }
  }
}
