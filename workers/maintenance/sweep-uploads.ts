import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { Running } from '../../shared/platform/runtime/lifecycle.ts';
import { apiFilePrefix } from '../../shared/platform/storage/file-name.ts';
import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { Lease } from '../ledger/lease.ts';
import { runOnSchedule } from './schedule.ts';

const dayMs = 24 * 60 * 60 * 1_000;

export interface UploadSweeperOptions {
  readonly redis: RedisClient;
  readonly workerId: string;
  readonly objects: ObjectStore;
  readonly log: Logger;
}

/**
 * Aborts multipart uploads that are a day old: the process that made them died, or could not reach the object store to
 * abort them. The bucket's lifecycle rule does the same, but many servers do not have such rules.
 */
export class UploadSweeper {
  readonly #objects: ObjectStore;
  readonly #lease: Lease;
  readonly #log: Logger;

  constructor({ redis, workerId, objects, log }: UploadSweeperOptions) {
    this.#objects = objects;
    this.#lease = new Lease(redis, workerId, redisKeys.fileSweepLease);
    this.#log = log;
  }

  /** @throws Error while Redis or the object store is unavailable */
  async sweep(signal: AbortSignal, nowMs = Date.now()): Promise<void> {
    if (!(await this.#lease.take())) return;
    const aborted = await this.#objects.abortUploads(apiFilePrefix, nowMs - dayMs, signal);
    if (aborted === null) {
      this.#log.debug('uploads cannot be listed; only the lifecycle rule aborts them');
    } else if (aborted > 0) {
      this.#log.info({ aborted }, 'unfinished uploads aborted');
    }
  }
}

/** Checks every hour. */
export function startSweepingUploads(options: UploadSweeperOptions): Running {
  const sweeper = new UploadSweeper(options);
  const run = async (signal: AbortSignal): Promise<void> => await sweeper.sweep(signal);
  return runOnSchedule({ name: 'sweep uploads', expression: '0 0 * * * *', run }, options.log);
}
