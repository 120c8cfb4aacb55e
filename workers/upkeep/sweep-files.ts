import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import type { Running } from '../../shared/runtime/lifecycle.ts';
import { filePrefix, findDueTime } from '../../shared/storage/file-name.ts';
import type { ObjectStore } from '../../shared/storage/object-store.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { Lease } from '../ledger/lease.ts';
import { runOnSchedule } from './schedule.ts';

const defaultPageKeys = 250;
/** While nothing is known to be due: other workers name files by clocks of their own, and deletions may have failed. */
const lookEveryMs = 60_000;

export interface FileSweeperOptions {
  readonly redis: RedisClient;
  readonly workerId: string;
  readonly objects: ObjectStore;
  readonly log: Logger;
  /** How many files are listed, and deleted, in one call each; 1000 at most. */
  readonly pageKeys?: number;
}

/**
 * Deletes images at the end of their 24 hours. Their names sort by time, so those that are due come first in a listing
 * and nothing else is read; the first that is not due tells when to look again. Whatever cannot be deleted is tried again
 * within a minute, and the bucket's lifecycle rule takes what no worker was there to delete.
 */
export class FileSweeper {
  readonly #objects: ObjectStore;
  readonly #lease: Lease;
  readonly #log: Logger;
  readonly #pageKeys: number;
  #lookedAtMs = -Infinity;
  /** Of the first file that was not due at the last look. */
  #nextDueMs = Infinity;

  constructor({ redis, workerId, objects, log, pageKeys = defaultPageKeys }: FileSweeperOptions) {
    this.#objects = objects;
    this.#lease = new Lease(redis, workerId, redisKeys.fileSweepLease);
    this.#log = log;
    this.#pageKeys = pageKeys;
  }

  /**
   * Deletes what is due now. Cheap enough for each second: it asks nobody while nothing can be due.
   * @throws Error while Redis or the object store is away
   */
  async sweep(signal: AbortSignal, nowMs = Date.now()): Promise<void> {
    if (!this.#isTimeToLook(nowMs)) return;
    // Should anything fail, the next look is a minute away.
    this.#lookedAtMs = nowMs;
    this.#nextDueMs = Infinity;
    if (!(await this.#lease.take())) {
      // Its holder may have died.
      this.#nextDueMs = nowMs;
      return;
    }
    let deleted = 0;
    let failed = 0;
    for (let after: string | undefined = filePrefix; after !== undefined;) {
      const keys = await this.#objects.list(filePrefix, this.#pageKeys, after, signal);
      const due = keys.filter((key) => (findDueTime(key) ?? Infinity) <= nowMs);
      const next = keys.map(findDueTime).find((dueMs) => dueMs !== null && dueMs > nowMs);
      const failures = due.length === 0 ? [] : await this.#objects.deleteAll(due, signal);
      for (const { key, reason } of failures.slice(0, 1)) {
        this.#log.warn({ key, reason, failed: failures.length }, 'expired files not deleted');
      }
      deleted += due.length - failures.length;
      failed += failures.length;
      this.#nextDueMs = next ?? Infinity;
      const isMore = next === undefined && keys.length === this.#pageKeys;
      if (isMore) this.#log.info({ deleted, failed }, 'deleting expired files');
      after = isMore && !signal.aborted && (await this.#lease.take()) ? keys.at(-1) : undefined;
    }
    if (deleted > 0) this.#log.debug({ deleted, failed }, 'expired files deleted');
  }

  #isTimeToLook(nowMs: number): boolean {
    // A clock may have stepped back.
    const isLong = Math.abs(nowMs - this.#lookedAtMs) >= lookEveryMs;
    return isLong || nowMs >= this.#nextDueMs;
  }
}

/** Looks every second, so that an image is deleted in the second in which its day ends. */
export function startSweepingFiles(options: FileSweeperOptions): Running {
  const sweeper = new FileSweeper(options);
  const run = async (signal: AbortSignal): Promise<void> => await sweeper.sweep(signal);
  return runOnSchedule({ name: 'sweep files', expression: '* * * * * *', run }, options.log);
}
