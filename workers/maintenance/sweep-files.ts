// decision 0049
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { apiFilePrefix, filePrefix, findDueTime } from '../../shared/platform/storage/file-name.ts';
import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { Lease } from '../ledger/lease.ts';
import { runOnSchedule } from './schedule.ts';

const defaultPageKeys = 250;
/**
 * How often to check while no file is known to be due: other workers' clocks may differ, and deletions may have failed.
 */
const checkIntervalMs = 60_000;

export interface FileSweeperOptions {
  readonly redis: RedisClient;
  readonly workerId: string;
  readonly objects: ObjectStore;
  readonly log: Logger;
  /** How many files are listed or deleted per call; at most 1000. */
  readonly pageKeys?: number;
}

/** The folders whose files have a time in their names. */
const folders = [filePrefix, apiFilePrefix];

/**
 * Deletes images after 24 hours, and files of the API when they are due. Their names sort by time, so a listing of a
 * folder starts with the files that are due and can stop after them. The first file that is not due determines the time
 * of the next check. Failed deletions are retried within a minute. If no worker is running, the bucket's lifecycle rules
 * delete the files.
 */
export class FileSweeper {
  readonly #objects: ObjectStore;
  readonly #lease: Lease;
  readonly #log: Logger;
  readonly #pageKeys: number;
  #checkedAtMs = -Infinity;
  /** When the first file that was not due at the last check becomes due. */
  #nextDueMs = Infinity;

  constructor({ redis, workerId, objects, log, pageKeys = defaultPageKeys }: FileSweeperOptions) {
    this.#objects = objects;
    this.#lease = new Lease(redis, workerId, redisKeys.fileSweepLease);
    this.#log = log;
    this.#pageKeys = pageKeys;
  }

  /**
   * Deletes the files that are due. Cheap enough to call every second: it sends no request while no file can be due.
   * @throws Error while Redis or the object store is unavailable
   */
  async sweep(signal: AbortSignal, nowMs = Date.now()): Promise<void> {
    if (!this.#isCheckDue(nowMs)) return;
    // If anything fails, the next check is in a minute.
    this.#checkedAtMs = nowMs;
    this.#nextDueMs = Infinity;
    if (!(await this.#lease.take())) {
      // Try again soon, because the lease holder may have died.
      this.#nextDueMs = nowMs;
      return;
    }
    for (const folder of folders) {
      if (!(await this.#lease.take())) break;
      const nextDueMs = await this.#sweepFolder(folder, signal, nowMs);
      this.#nextDueMs = Math.min(this.#nextDueMs, nextDueMs);
    }
  }

  /** @returns when the first file that is not due becomes due; Infinity if none is known */
  async #sweepFolder(folder: string, signal: AbortSignal, nowMs: number): Promise<number> {
    let nextDueMs = Infinity;
    let deleted = 0;
    let failed = 0;
    for (let after: string | undefined = folder; after !== undefined;) {
      const keys = await this.#objects.list(folder, this.#pageKeys, after, signal);
      const due = keys.filter((key) => (findDueTime(key) ?? Infinity) <= nowMs);
      const next = keys.map(findDueTime).find((dueMs) => dueMs !== null && dueMs > nowMs);
      const failures = due.length === 0 ? [] : await this.#objects.deleteAll(due, signal);
      for (const { key, reason } of failures.slice(0, 1)) {
        this.#log.warn({ key, reason, failed: failures.length }, 'expired files not deleted');
      }
      deleted += due.length - failures.length;
      failed += failures.length;
      nextDueMs = next ?? Infinity;
      const hasMore = next === undefined && keys.length === this.#pageKeys;
      if (hasMore) this.#log.info({ folder, deleted, failed }, 'deleting expired files');
      after = hasMore && !signal.aborted && (await this.#lease.take()) ? keys.at(-1) : undefined;
    }
    if (deleted > 0) this.#log.debug({ folder, deleted, failed }, 'expired files deleted');
    return nextDueMs;
  }

  #isCheckDue(nowMs: number): boolean {
    // The clock may have been set back.
    const isOverdue = Math.abs(nowMs - this.#checkedAtMs) >= checkIntervalMs;
    return isOverdue || nowMs >= this.#nextDueMs;
  }
}

/** Checks every second, so that an image is deleted in the second in which its 24 hours end. */
export function startSweepingFiles(options: FileSweeperOptions): Running {
  const sweeper = new FileSweeper(options);
  const run = async (signal: AbortSignal): Promise<void> => await sweeper.sweep(signal);
  return runOnSchedule({ name: 'sweep files', expression: '* * * * * *', run }, options.log);
}
