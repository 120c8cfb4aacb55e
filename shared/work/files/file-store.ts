import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import { parseFileId } from './file-id.ts';
import {
  parseFile,
  parseSummary,
  type FileContent,
  type FilePurpose,
  type FileRecord,
  type FileSummary,
} from './file-record.ts';
import type { FileVerdict } from './file-verdict.ts';

/** Maximum number of files that one script lists, so that it stays short. */
const maxListed = 1_000;
/** Maximum number of files that one script expires. */
const maxPerScript = 64;
/** Maximum number of objects that a store deletes in one call. */
const maxTrashed = 1_000;
/** Longer than any upload can take. An object that belongs to no file by then is deleted. */
const maxUploadMs = 25 * 60 * 60_000;

const beginScript = new LuaScript(
  new URL('./begin-file.lua', import.meta.url),
  ['prefix', 'accountId', 'key', 'bytes', 'maxFiles', 'maxBytes'],
  { constants: { maxUploadMs } },
);
const beginSegmentsScript = new LuaScript(new URL('./begin-segments.lua', import.meta.url), ['prefix'], {
  itemNames: ['key'],
  constants: { maxUploadMs },
});
const createScript = new LuaScript(new URL('./create-file.lua', import.meta.url), [
  'prefix',
  'accountId',
  'id',
  'name',
  'purpose',
  'key',
  'bytes',
  'verdict',
  'maxFiles',
  'maxBytes',
]);
const readScript = new LuaScript(new URL('./read-file.lua', import.meta.url), [
  'prefix',
  'accountId',
  'id',
  'withSegments',
  'withHidden',
]);
const listScript = new LuaScript(new URL('./list-files.lua', import.meta.url), [
  'prefix',
  'accountId',
  'list',
  'after',
  'order',
  'limit',
]);
const deleteScript = new LuaScript(new URL('./delete-file.lua', import.meta.url), [
  'prefix',
  'accountId',
  'id',
]);
const expireScript = new LuaScript(new URL('./expire-files.lua', import.meta.url), ['prefix'], {
  constants: { maxPerScript },
});
const findDueScript = new LuaScript(new URL('./find-due-files.lua', import.meta.url), ['prefix'], {
  constants: { maxTrashed },
});

/** What the files of an account may have together. */
export interface FileBounds {
  readonly maxFiles: number;
  readonly maxBytes: number;
}

/** An account has as many files, or bytes of files, as it may have. */
export interface FileRefusal {
  readonly outcome: 'too_many_files' | 'too_many_bytes';
  readonly files: number;
  readonly byteLength: number;
}

type RefusalReply = [outcome: FileRefusal['outcome'], files: number, byteLength: number];

export interface NewFile {
  /** From `createFileId`. */
  readonly id: string;
  readonly name: string;
  readonly purpose: FilePurpose;
  /** Of its object. */
  readonly key: string;
  readonly byteLength: number;
  readonly verdict: FileVerdict | null;
}

export interface FileQuery {
  /** Null for all purposes. */
  readonly purpose: FilePurpose | null;
  /** Id of the file that precedes the page. Null for the first page. The file may be deleted since. */
  readonly after: string | null;
  /** By creation time. */
  readonly order: 'asc' | 'desc';
  readonly limit: number;
}

export interface FilePage {
  readonly files: readonly FileSummary[];
  readonly isMore: boolean;
}

/** What a worker has to do for the files of a shard. */
export interface DueFiles {
  readonly isExpired: boolean;
  /** Keys of objects that belong to no file. */
  readonly trashed: readonly string[];
}

const valuesOf = (accountId: string) => ({ prefix: redisKeys.filesOf(shardOf(accountId)), accountId });

/**
 * The files of the API: uploaded input of batches, and their results. Their bytes are in the bucket. A file that has
 * expired, or that another account has, does not exist.
 */
export class FileStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /**
   * Checks before an upload whether the account may have one more file. The object with this key is deleted after a day
   * unless it belongs to a file then.
   * @param byteLength that the file has at least
   */
  async begin(
    accountId: string,
    key: string,
    byteLength: number,
    bounds: FileBounds,
  ): Promise<{ readonly outcome: 'ok'; readonly nowMs: number } | FileRefusal> {
    const values = { ...valuesOf(accountId), key, bytes: byteLength, ...bounds };
    const reply = (await callRedis(() => beginScript.run(this.#redis, values))) as
      | ['ok', nowMs: number]
      | RefusalReply;
    return reply[0] === 'ok' ? { outcome: reply[0], nowMs: reply[1] } : toRefusal(reply);
  }

  /**
   * Begins segments of an account's files, before their objects are stored. An object is deleted after a day unless it
   * belongs to a file by then.
   */
  async beginSegments(accountId: string, keys: readonly string[]): Promise<void> {
    const values = { prefix: redisKeys.filesOf(shardOf(accountId)) };
    const items = keys.map((key) => ({ key }));
    await callRedis(() => beginSegmentsScript.run(this.#redis, values, items));
  }

  /** Creates a file whose object is stored. The object of a refused file is deleted. */
  async create(
    accountId: string,
    { id, name, purpose, key, byteLength, verdict }: NewFile,
    bounds: FileBounds,
  ): Promise<{ readonly outcome: 'ok' } | FileRefusal> {
    const file = { id, name, purpose, key, bytes: byteLength };
    const values = {
      ...valuesOf(accountId),
      ...file,
      verdict: verdict === null ? '' : JSON.stringify(verdict),
      ...bounds,
    };
    const reply = (await callRedis(() => createScript.run(this.#redis, values))) as ['ok'] | RefusalReply;
    return reply[0] === 'ok' ? { outcome: reply[0] } : toRefusal(reply);
  }

  /** Returns null if the account has no such file. */
  async find(accountId: string, id: string): Promise<FileRecord | null> {
    const content = await this.#read(accountId, id, { withSegments: 0, withHidden: 0 });
    return content?.file ?? null;
  }

  /** Like `find`, with where the content is. */
  async findContent(accountId: string, id: string): Promise<FileContent | null> {
    return await this.#read(accountId, id, { withSegments: 1, withHidden: 0 });
  }

  /** Finds a file that a batch holds, which may have been deleted or have expired since. */
  async findHeld(accountId: string, id: string): Promise<FileContent | null> {
    return await this.#read(accountId, id, { withSegments: 1, withHidden: 1 });
  }

  async #read(
    accountId: string,
    id: string,
    options: { withSegments: 0 | 1; withHidden: 0 | 1 },
  ): Promise<FileContent | null> {
    // A script could not read the times of such an id.
    if (parseFileId(id) === null) return null;
    const values = { ...valuesOf(accountId), id, ...options };
    const reply = await callRedis(() => readScript.run(this.#redis, values));
    const [fields, segments] = reply as [fields: string[], segments: string[]];
    return parseFile(id, fields, segments);
  }

  /** Lists the account's files. Takes one round trip to Redis for each thousand of them. */
  async list(accountId: string, { purpose, after, order, limit }: FileQuery): Promise<FilePage> {
    const files: FileSummary[] = [];
    const query = { ...valuesOf(accountId), list: purpose ?? 'all', order };
    let last = after ?? '';
    for (;;) {
      const values = { ...query, after: last, limit: Math.min(limit - files.length, maxListed) };
      const reply = await callRedis(() => listScript.run(this.#redis, values));
      const [isMore, lastRead, found] = reply as [
        isMore: number,
        lastRead: string,
        found: [id: string, name: string, purpose: string, bytes: string][],
      ];
      files.push(...found.map(parseSummary));
      if (isMore === 0 || files.length >= limit) return { files, isMore: isMore === 1 };
      last = lastRead;
    }
  }

  /**
   * Deletes a file. Its bytes stay until no batch reads it.
   * @returns false if the account has no such file
   */
  async delete(accountId: string, id: string): Promise<boolean> {
    if (parseFileId(id) === null) return false;
    const reply = await callRedis(() => deleteScript.run(this.#redis, { ...valuesOf(accountId), id }));
    return reply === 1;
  }

  async findDue(shard: number): Promise<DueFiles> {
    const prefix = redisKeys.filesOf(shard);
    const reply = await callRedis(() => findDueScript.run(this.#redis, { prefix }));
    const [expired, trashed] = reply as [expired: number, trashed: string[]];
    return { isExpired: expired === 1, trashed };
  }

  /** Drops files of a shard that have expired. @returns whether there may be more */
  async expire(shard: number): Promise<boolean> {
    const prefix = redisKeys.filesOf(shard);
    const reply = await callRedis(() => expireScript.run(this.#redis, { prefix }));
    return (reply as number) === maxPerScript;
  }

  /** Records that objects are deleted. */
  async forgetTrashed(shard: number, keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await callRedis(() => this.#redis.zrem(redisKeys.fileTrash(shard), ...keys));
  }
}

const toRefusal = ([outcome, files, byteLength]: RefusalReply): FileRefusal => ({
  outcome,
  files,
  byteLength,
});
