import { shardCount } from '../../shared/platform/redis/redis-keys.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import type { FileStore } from '../../shared/work/files/file-store.ts';
import type { ShardLeases } from '../ledger/shard-leases.ts';

/** Timeout of one call that deletes objects. */
const deletionMs = 30_000;
/** Maximum number of script executions per shard and pass. */
const maxExecutions = 16;

export interface FileKeeperOptions {
  readonly files: FileStore;
  readonly objects: Pick<ObjectStore, 'deleteAll'>;
  readonly leases: Pick<ShardLeases, 'take'>;
  readonly log: Logger;
}

/**
 * Maintains the files of this worker's shards: drops the records of files that have expired, and deletes the objects of
 * files that no longer exist. Callers do not see expired files in any case.
 */
export class FileKeeper {
  readonly #options: FileKeeperOptions;

  constructor(options: FileKeeperOptions) {
    this.#options = options;
  }

  /**
   * Makes one pass over all shards. Skips shards whose leases other workers hold.
   * @throws Error while Redis or the object store is unavailable
   */
  async maintainShards(): Promise<void> {
    const shards = Array.from({ length: shardCount }, (_, shard) => shard);
    const passes = await Promise.allSettled(shards.map((shard) => this.#maintain(shard)));
    const firstFailure = passes.find((pass) => pass.status === 'rejected');
    if (firstFailure !== undefined) throw firstFailure.reason;
  }

  async #maintain(shard: number): Promise<void> {
    const { files, leases } = this.#options;
    if (!(await leases.take(shard))) return;
    const { isExpired, trashed } = await files.findDue(shard);
    if (isExpired) await this.#expire(shard);
    // The objects of files that have just expired are deleted in the next pass.
    if (trashed.length > 0) await this.#deleteTrashed(shard, trashed);
  }

  async #expire(shard: number): Promise<void> {
    for (let executions = 0; executions < maxExecutions; executions++) {
      if (!(await this.#options.files.expire(shard))) return;
    }
  }

  async #deleteTrashed(shard: number, keys: readonly string[]): Promise<void> {
    const { files, objects, log } = this.#options;
    const failures = await objects.deleteAll(keys, AbortSignal.timeout(deletionMs));
    const remaining = new Set(failures.map(({ key }) => key));
    await files.forgetTrashed(
      shard,
      keys.filter((key) => !remaining.has(key)),
    );
    for (const { key, reason } of failures.slice(0, 1)) {
      log.warn({ key, reason, failed: failures.length }, 'objects of deleted files not deleted');
    }
  }
}
