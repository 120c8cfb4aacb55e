import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChecksumAlgorithm } from './checksums.ts';
import { ensureFolder, hasErrorCode, syncFolder, writeFileAtomically } from './durable-files.ts';
import { S3Error } from './errors.ts';
import type { Exclusive } from './exclusive.ts';
import type { Expiry } from './lifecycle.ts';
import { readPartRecord, writeObjectFile } from './object-file.ts';
import type { ChecksumType, PartRecord } from './object-file.ts';
import type { NamedValue } from './parse-request.ts';

/** What a client said about an object when it began to upload it in parts. */
export interface UploadRecord {
  key: string;
  initiatedAtMs: number;
  headers: readonly NamedValue[];
  metadata: readonly NamedValue[];
  checksum?: UploadChecksum | undefined;
}

export interface UploadChecksum {
  algorithm: ChecksumAlgorithm;
  type: ChecksumType;
}

/** An upload in a listing. */
export interface UploadEntry {
  id: string;
  key: string;
  initiatedAtMs: number;
}

export interface NumberedPart extends PartRecord {
  partNumber: number;
}

export interface UploadStoreEnvironment {
  tempDir: string;
  now: () => number;
  /** Called with one line for uploads that cannot be read. */
  warn: (line: string) => void;
  /** Shared with the changes of the bucket's objects. */
  exclusive: Exclusive;
  /** When an upload is aborted by a lifecycle rule. */
  findExpiry: (key: string, initiatedAtMs: number) => Expiry | undefined;
}

export const maxPartNumber = 10_000;
/** S3 has no such limit. Without one, uploads that nobody ends would fill this server's memory. */
const maxUploads = 1000;
const recordName = 'upload.json';
const partNamePattern = /^part-(\d{5})$/;

/**
 * The unfinished multipart uploads of a bucket. Each has a folder with its record and a file for each part. A folder
 * appears and disappears by one rename, so that an upload exists either completely or not at all. Only the list of
 * uploads is in memory; their parts are not.
 */
export class UploadStore {
  readonly #dir: string;
  readonly #environment: UploadStoreEnvironment;
  readonly #entries = new Map<string, UploadEntry>();
  #isClosed = false;

  constructor(dir: string, environment: UploadStoreEnvironment) {
    this.#dir = dir;
    this.#environment = environment;
  }

  /**
   * Reads the folder. Removes uploads whose object exists: the server died after it had stored the object and before it
   * had removed the upload.
   */
  async load(isCompleted: (key: string, id: string) => Promise<boolean>): Promise<void> {
    await ensureFolder(this.#dir);
    for (const id of await readdir(this.#dir)) {
      try {
        const { key, initiatedAtMs } = await this.#readRecord(id);
        if (await isCompleted(key, id)) await this.#remove(await this.discard(id));
        else this.#entries.set(id, { id, key, initiatedAtMs });
      } catch (error) {
        this.#environment.warn(`embedded S3: skipping ${join(this.#dir, id)}: ${String(error)}`);
      }
    }
  }

  /**
   * Starts an upload.
   * @returns its id. Ids sort by time
   */
  async create(record: UploadRecord): Promise<string> {
    const { tempDir, exclusive } = this.#environment;
    const time = record.initiatedAtMs.toString(16).padStart(12, '0');
    const id = `${time}${randomBytes(16).toString('hex')}`;
    const temp = join(tempDir, randomUUID());
    try {
      await mkdir(temp, { mode: 0o700 });
      await writeFileAtomically(join(temp, recordName), JSON.stringify(record), tempDir);
      await exclusive.run(async () => {
        if (this.#isClosed) throw new S3Error('NoSuchBucket');
        if (this.#entries.size >= maxUploads) {
          throw new S3Error('SlowDown', {
            message: `This bucket has ${String(maxUploads)} unfinished multipart uploads. Complete or abort some of them.`,
          });
        }
        await rename(temp, join(this.#dir, id));
        this.#entries.set(id, { id, key: record.key, initiatedAtMs: record.initiatedAtMs });
      });
      await syncFolder(this.#dir);
      return id;
    } finally {
      await this.#remove(temp);
    }
  }

  /** @throws S3Error `NoSuchUpload` if there is no such upload, or it has expired */
  require(key: string, id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.key !== key || !this.#isLive(entry)) throw createNoSuchUpload(id);
  }

  /** @throws S3Error `NoSuchUpload` */
  async read(key: string, id: string): Promise<UploadRecord> {
    this.require(key, id);
    return await this.#expectFiles(id, () => this.#readRecord(id));
  }

  /** All uploads, ordered by key and then by time, except expired ones. `compareKeys` defines the order of keys. */
  list(compareKeys: (a: string, b: string) => number): UploadEntry[] {
    return [...this.#entries.values()]
      .filter((entry) => this.#isLive(entry))
      .sort((a, b) => compareKeys(a.key, b.key) || (a.id < b.id ? -1 : 1));
  }

  /** Stores a part, and replaces an earlier one with the same number. */
  async putPart(
    key: string,
    id: string,
    partNumber: number,
    chunks: AsyncIterable<Buffer>,
    describe: (size: number) => PartRecord,
  ): Promise<PartRecord> {
    const temp = join(this.#environment.tempDir, randomUUID());
    try {
      const record = await writeObjectFile(temp, chunks, describe);
      return await this.#expectFiles(id, async () => {
        await this.#environment.exclusive.run(async () => {
          this.require(key, id);
          await rename(temp, this.#locatePart(id, partNumber));
        });
        await syncFolder(join(this.#dir, id));
        return record;
      });
    } finally {
      await rm(temp, { force: true });
    }
  }

  /** Returns up to `maxParts` parts with numbers above `after`, in order, and whether there are more. */
  async listParts(
    key: string,
    id: string,
    after: number,
    maxParts: number,
  ): Promise<{ parts: NumberedPart[]; hasMore: boolean }> {
    this.require(key, id);
    return await this.#expectFiles(id, async () => {
      const numbers = (await readdir(join(this.#dir, id)))
        .map((name) => Number(partNamePattern.exec(name)?.[1] ?? 0))
        .filter((partNumber) => partNumber > after)
        .sort((a, b) => a - b);
      const parts: NumberedPart[] = [];
      for (const partNumber of numbers.slice(0, maxParts)) {
        const { record, handle } = await this.#openPart(id, partNumber);
        await handle.close();
        parts.push({ ...record, partNumber });
      }
      return { parts, hasMore: maxParts > 0 && numbers.length > maxParts };
    });
  }

  /**
   * Opens a part for reading. The caller must close the handle.
   * @returns undefined if the upload has no such part
   * @throws S3Error `NoSuchUpload`
   */
  async openPart(
    key: string,
    id: string,
    partNumber: number,
  ): Promise<{ record: PartRecord; handle: FileHandle } | undefined> {
    this.require(key, id);
    try {
      return await this.#openPart(id, partNumber);
    } catch (error) {
      if (!hasErrorCode(error, 'ENOENT')) throw error;
      // The whole upload may have ended in the meantime.
      this.require(key, id);
      return undefined;
    }
  }

  /** Removes an upload and its parts. */
  async abort(key: string, id: string): Promise<void> {
    const trash = await this.#environment.exclusive.run(async () => {
      this.require(key, id);
      return await this.discard(id);
    });
    await this.#remove(trash);
  }

  /**
   * Ends an upload durably. Must be called while no other change of the bucket runs.
   * @returns where its files are now; the caller must delete them
   */
  async discard(id: string): Promise<string> {
    const trash = join(this.#environment.tempDir, randomUUID());
    await rename(join(this.#dir, id), trash);
    this.#entries.delete(id);
    await syncFolder(this.#dir);
    return trash;
  }

  /** Removes the uploads that lifecycle rules abort, and returns how many there were. */
  async sweep(): Promise<number> {
    const expired = [...this.#entries.values()].filter((entry) => !this.#isLive(entry));
    let count = 0;
    for (const { id } of expired) {
      const trash = await this.#environment.exclusive.run(async () => {
        const entry = this.#entries.get(id);
        return entry === undefined || this.#isLive(entry) ? undefined : await this.discard(id);
      });
      if (trash === undefined) continue;
      await this.#remove(trash);
      count += 1;
    }
    return count;
  }

  /** Called when the bucket has been deleted. */
  close(): void {
    this.#isClosed = true;
    this.#entries.clear();
  }

  /** When the upload is aborted by a lifecycle rule. */
  findExpiry(key: string, initiatedAtMs: number): Expiry | undefined {
    return this.#environment.findExpiry(key, initiatedAtMs);
  }

  #isLive({ key, initiatedAtMs }: UploadEntry): boolean {
    const expiry = this.findExpiry(key, initiatedAtMs);
    return expiry === undefined || this.#environment.now() < expiry.expiresAtMs;
  }

  #locatePart(id: string, partNumber: number): string {
    return join(this.#dir, id, `part-${String(partNumber).padStart(5, '0')}`);
  }

  async #readRecord(id: string): Promise<UploadRecord> {
    return JSON.parse(await readFile(join(this.#dir, id, recordName), 'utf8')) as UploadRecord;
  }

  async #openPart(id: string, partNumber: number): Promise<{ record: PartRecord; handle: FileHandle }> {
    const handle = await open(this.#locatePart(id, partNumber), 'r');
    try {
      return { record: await readPartRecord(handle), handle };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Files that disappear while they are used mean that the upload has ended. */
  async #expectFiles<Result>(id: string, use: () => Promise<Result>): Promise<Result> {
    try {
      return await use();
    } catch (error) {
      if (hasErrorCode(error, 'ENOENT') && !this.#entries.has(id)) throw createNoSuchUpload(id);
      throw error;
    }
  }

  async #remove(path: string): Promise<void> {
    await rm(path, { recursive: true, force: true });
  }
}

function createNoSuchUpload(id: string): S3Error {
  return new S3Error('NoSuchUpload', { details: { UploadId: id } });
}
