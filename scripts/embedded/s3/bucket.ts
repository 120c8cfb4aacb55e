import { createHash, randomUUID } from 'node:crypto';
import { open, readFile, readdir, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ensureFolder, hasErrorCode, syncFolder, writeFileAtomically } from './durable-files.ts';
import { S3Error } from './errors.ts';
import { Exclusive } from './exclusive.ts';
import { findExpiry, findUploadExpiry } from './lifecycle.ts';
import type { Expiry, LifecycleRule } from './lifecycle.ts';
import { readObjectRecord, writeObjectFile } from './object-file.ts';
import type { ObjectRecord } from './object-file.ts';
import { ObjectIndex } from './object-index.ts';
import type { IndexEntry, ListPage, ListQuery } from './object-index.ts';
import { UploadStore } from './upload-store.ts';

export interface BucketEnvironment {
  tempDir: string;
  now: () => number;
  /** Called with one line for files that cannot be read. */
  warn: (line: string) => void;
}

export interface PutOptions {
  /** Receives the key of the object to be replaced, and throws to prevent that. */
  checkCondition: (key: string) => void;
  /** The multipart upload of which this is the object. It ends when the object is stored. */
  uploadId?: string | undefined;
}

export interface OpenObject {
  record: ObjectRecord;
  /** The caller must close it. */
  handle: FileHandle;
}

// Limits the number of open files while the index is rebuilt.
const loadConcurrency = 64;

/**
 * One bucket on disk. Keys are never part of a path: files are named by the key's SHA-256, so no key can lead outside
 * the folder, collide with a folder, or be too long for the file system.
 */
export class Bucket {
  readonly #dir: string;
  readonly #environment: BucketEnvironment;
  readonly #index = new ObjectIndex();
  #rules: readonly LifecycleRule[] = [];
  readonly #exclusive = new Exclusive();
  #isRemoved = false;
  /** The unfinished multipart uploads. */
  readonly uploads: UploadStore;

  private constructor(dir: string, environment: BucketEnvironment) {
    this.#dir = dir;
    this.#environment = environment;
    this.uploads = new UploadStore(join(dir, 'uploads'), {
      ...environment,
      exclusive: this.#exclusive,
      findExpiry: (key, initiatedAtMs) => findUploadExpiry(this.#rules, key, initiatedAtMs),
    });
  }

  /** Opens a bucket's folder, creating it if it is missing, and reads its contents. */
  static async open(dir: string, environment: BucketEnvironment): Promise<Bucket> {
    const bucket = new Bucket(dir, environment);
    await ensureFolder(join(dir, 'objects'));
    await bucket.#loadRules();
    await bucket.#loadIndex();
    await bucket.uploads.load(async (key, id) => (await bucket.readRecord(key))?.uploadId === id);
    return bucket;
  }

  get rules(): readonly LifecycleRule[] {
    return this.#rules;
  }

  /** Replaces the lifecycle rules. No rules means no lifecycle. */
  async setRules(rules: readonly LifecycleRule[]): Promise<void> {
    await this.#exclusive.run(async () => {
      await writeFileAtomically(
        join(this.#dir, 'lifecycle.json'),
        JSON.stringify(rules),
        this.#environment.tempDir,
      );
      this.#rules = rules;
    });
  }

  findExpiry(key: string, lastModifiedMs: number): Expiry | undefined {
    return findExpiry(this.#rules, key, lastModifiedMs);
  }

  /** Returns an object's index entry, or undefined if the object is missing or expired. */
  find(key: string): IndexEntry | undefined {
    const entry = this.#index.get(key);
    return entry !== undefined && this.#isLive(key, entry) ? entry : undefined;
  }

  list(query: ListQuery): ListPage {
    return this.#index.list(query, (key, entry) => this.#isLive(key, entry));
  }

  hasObjects(): boolean {
    return this.list({ prefix: '', delimiter: '', maxKeys: 1 }).contents.length > 0;
  }

  /**
   * Stores an object. Writes its bytes to a temporary file, which atomically replaces the old object once everything is
   * verified and on disk.
   * @throws S3Error `NoSuchBucket` if the bucket, `NoSuchUpload` if the upload was deleted in the meantime
   */
  async put(
    chunks: AsyncIterable<Buffer>,
    describe: (size: number) => ObjectRecord,
    { checkCondition, uploadId }: PutOptions,
  ): Promise<ObjectRecord> {
    const temp = join(this.#environment.tempDir, randomUUID());
    let trash: string | undefined;
    try {
      const record = await writeObjectFile(temp, chunks, describe);
      const { folder, file } = this.#locate(record.key);
      // Rename and index in one exclusive step, so that index and file never describe different uploads.
      await this.#exclusive.run(async () => {
        if (this.#isRemoved) {
          throw new S3Error('NoSuchBucket', { details: { BucketName: basename(this.#dir) } });
        }
        if (uploadId !== undefined) this.uploads.require(record.key, uploadId);
        checkCondition(record.key);
        await ensureFolder(folder);
        await rename(temp, file);
        this.#index.set(record.key, toEntry(record));
        if (uploadId === undefined) return;
        // The parts must not disappear before the object is durable. If the process dies here, both exist, and the next
        // start removes the upload.
        await syncFolder(folder);
        trash = await this.uploads.discard(uploadId);
      });
      await syncFolder(folder);
      return record;
    } finally {
      await rm(temp, { force: true });
      if (trash !== undefined) await rm(trash, { recursive: true, force: true });
    }
  }

  /** Reads an object's metadata. Returns undefined if the object is missing or expired. */
  async readRecord(key: string): Promise<ObjectRecord | undefined> {
    const found = await this.open(key);
    await found?.handle.close();
    return found?.record;
  }

  /** Opens an object for reading. A later overwrite does not affect the reader. */
  async open(key: string): Promise<OpenObject | undefined> {
    if (this.find(key) === undefined) return undefined;
    let handle: FileHandle;
    try {
      handle = await open(this.#locate(key).file, 'r');
    } catch (error) {
      if (hasErrorCode(error, 'ENOENT')) return undefined;
      throw error;
    }
    try {
      return { record: await readObjectRecord(handle), handle };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Deletes an object. As in S3, a missing object is not an error. */
  async delete(key: string): Promise<void> {
    await this.#exclusive.run(() => this.#removeFile(key));
  }

  /** Deletes expired objects and unfinished uploads, and returns how many there were. */
  async sweep(): Promise<number> {
    if (this.#rules.length === 0) return 0;
    const uploads = await this.uploads.sweep();
    const expired = [...this.#index.entries()].filter(([key, entry]) => !this.#isLive(key, entry));
    let count = 0;
    for (const [key] of expired) {
      await this.#exclusive.run(async () => {
        const entry = this.#index.get(key);
        // It may have been overwritten or deleted since it was found.
        if (entry === undefined || this.#isLive(key, entry)) return;
        await this.#removeFile(key);
        count += 1;
      });
    }
    return uploads + count;
  }

  /**
   * Removes the bucket if it has no objects. Its unfinished uploads are aborted.
   * @returns whether it was removed
   */
  async remove(): Promise<boolean> {
    const trash = join(this.#environment.tempDir, randomUUID());
    const isRemoved = await this.#exclusive.run(async () => {
      if (this.hasObjects()) return false;
      await rename(this.#dir, trash);
      this.#isRemoved = true;
      this.uploads.close();
      return true;
    });
    if (isRemoved) await rm(trash, { recursive: true, force: true });
    return isRemoved;
  }

  #isLive(key: string, entry: IndexEntry): boolean {
    const expiry = this.findExpiry(key, entry.lastModifiedMs);
    return expiry === undefined || this.#environment.now() < expiry.expiresAtMs;
  }

  #locate(key: string): { folder: string; file: string } {
    const name = createHash('sha256').update(key).digest('hex');
    const folder = join(this.#dir, 'objects', name.slice(0, 2));
    return { folder, file: join(folder, name) };
  }

  async #removeFile(key: string): Promise<void> {
    if (this.#index.get(key) === undefined) return;
    const { folder, file } = this.#locate(key);
    await rm(file, { force: true });
    this.#index.delete(key);
    await syncFolder(folder);
  }

  async #loadRules(): Promise<void> {
    try {
      const text = await readFile(join(this.#dir, 'lifecycle.json'), 'utf8');
      this.#rules = JSON.parse(text) as LifecycleRule[];
    } catch (error) {
      if (!hasErrorCode(error, 'ENOENT')) throw error;
    }
  }

  async #loadIndex(): Promise<void> {
    const root = join(this.#dir, 'objects');
    for (const folder of await readdir(root)) {
      const paths = (await readdir(join(root, folder))).map((name) => join(root, folder, name));
      for (let start = 0; start < paths.length; start += loadConcurrency) {
        await Promise.all(paths.slice(start, start + loadConcurrency).map((path) => this.#loadObject(path)));
      }
    }
  }

  async #loadObject(path: string): Promise<void> {
    try {
      const record = await readRecordAt(path);
      this.#index.set(record.key, toEntry(record));
    } catch (error) {
      this.#environment.warn(`embedded S3: skipping ${path}: ${String(error)}`);
    }
  }
}

async function readRecordAt(path: string): Promise<ObjectRecord> {
  const handle = await open(path, 'r');
  try {
    return await readObjectRecord(handle);
  } finally {
    await handle.close();
  }
}

function toEntry({ size, etag, lastModifiedMs }: ObjectRecord): IndexEntry {
  return { size, etag, lastModifiedMs };
}
