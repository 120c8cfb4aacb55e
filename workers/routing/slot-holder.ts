// decision 0070
import { randomUUID } from 'node:crypto';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { freeDeadSlots, reportHolder, retireHolder } from './slot-holders-script.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

export interface SlotHolderOptions {
  readonly redis: RedisClient;
  readonly workerId: string;
  readonly leaseMs: number;
  /** The sorted sets of slots in which to free those of dead holders. */
  readonly slotSets: () => readonly string[];
  readonly log: Logger;
}

/** What happens to the slots of this process. */
export interface SlotEvents {
  /** This process counted as dead: its slots were freed. @returns how many it held */
  readonly onDead: () => number;
  /** Renews the leases of all held slots, because Redis may have lost them. */
  readonly restore: () => Promise<void>;
  /** Slots of other processes were freed. */
  readonly onFreed: () => void;
}

/**
 * The name under which this process holds call slots. Reports it once a second as alive, and frees the slots of those
 * that count as dead. If this process counted as dead itself, it continues under a new name: nothing that it does under
 * the old one has any effect.
 */
export class SlotHolder {
  readonly #options: SlotHolderOptions;
  readonly #events: SlotEvents;
  readonly #timer: NodeJS.Timeout;
  readonly #newEpoch = randomUUID();
  /** The dead holders whose slots this process has freed. */
  #handled = new Set<string>();
  #lives = 1;
  #epoch = '';
  #aliveSinceMs = -Infinity;
  #hasFailed = false;
  #reporting: Promise<void> | null = null;

  constructor(options: SlotHolderOptions, events: SlotEvents) {
    this.#options = options;
    this.#events = events;
    this.#timer = setInterval(() => this.#reportInBackground(), liveness.worker.reportMs);
    this.#timer.unref();
    this.#reportInBackground();
  }

  get name(): string {
    return `${this.#options.workerId}.${this.#lives}`;
  }

  /** Whether this process certainly does not count as dead, because it reported recently. */
  get isAlive(): boolean {
    return performance.now() - this.#aliveSinceMs < liveness.worker.deadMs;
  }

  /** Reports this process as alive now. @throws AppError `service_unavailable` */
  async report(): Promise<void> {
    this.#reporting ??= this.#report().finally(() => {
      this.#reporting = null;
    });
    await this.#reporting;
  }

  /** Stops reporting. Slots that are not released by then are freed by other processes. Never rejects. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // A report in flight would make this process count as alive again.
    await this.#reporting?.catch(() => undefined);
    const { redis, log } = this.#options;
    this.#epoch = '';
    this.#aliveSinceMs = -Infinity;
    if (redis.status !== 'ready') return;
    await retireHolder(redis, this.name).catch((error: unknown) =>
      log.debug({ err: error }, 'unregistering as a holder of call slots failed'),
    );
  }

  #reportInBackground(): void {
    const { log } = this.#options;
    const reporting = this.report().catch((error: unknown) =>
      log.debug({ err: error }, 'reporting as a holder of call slots failed'),
    );
    runInBackground(reporting, 'reporting as a holder of call slots', log);
  }

  async #report(): Promise<void> {
    const { redis, leaseMs, log } = this.#options;
    // Redis receives the report later than this, so it does not count this process as dead any earlier.
    const sentAtMs = performance.now();
    const times = { knownEpoch: this.#epoch, newEpoch: this.#newEpoch, leaseMs };
    const report = await callRedis(() => reportHolder(redis, this.name, times)).catch((error: unknown) => {
      this.#hasFailed = true;
      throw error;
    });
    if (report.isDead) {
      const silentSeconds = Math.round((sentAtMs - this.#aliveSinceMs) / 1_000);
      this.#lives += 1;
      this.#epoch = '';
      const slots = this.#events.onDead();
      log.warn({ slots, silentSeconds }, 'this worker counted as dead, and its call slots were freed');
      await this.#report();
      return;
    }
    this.#epoch = report.epoch;
    this.#aliveSinceMs = sentAtMs;
    if (report.mustRestore || this.#hasFailed) await this.#events.restore();
    this.#hasFailed = false;
    await this.#free(report.dead);
  }

  /** Every process frees the slots of every dead holder, because its catalog may list other slots than theirs. */
  async #free(dead: readonly string[]): Promise<void> {
    const isHandled = dead.every((name) => this.#handled.has(name));
    if (!isHandled) {
      const { redis, slotSets, log } = this.#options;
      const leases = await callRedis(() => freeDeadSlots(redis, slotSets()));
      if (leases > 0) log.warn({ leases }, 'call slots of a dead worker freed');
      this.#events.onFreed();
    }
    this.#handled = new Set(dead);
  }
}
