import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Bucket } from './bucket.ts';
import type { BucketEnvironment } from './bucket.ts';
import { ensureFolder, syncFolder } from './durable-files.ts';
import { S3Error } from './errors.ts';

/** All buckets of one data folder. */
export class BucketStore {
  readonly #root: string;
  readonly #environment: BucketEnvironment;
  readonly #buckets = new Map<string, Bucket>();
  readonly #creating = new Set<string>();

  private constructor(root: string, environment: BucketEnvironment) {
    this.#root = root;
    this.#environment = environment;
  }

  static async open(dir: string, environment: Omit<BucketEnvironment, 'tempDir'>): Promise<BucketStore> {
    const tempDir = join(dir, 'temp');
    // Leftovers are from uploads that were interrupted by a crash and never acknowledged.
    await rm(tempDir, { recursive: true, force: true });
    await ensureFolder(tempDir);
    const store = new BucketStore(join(dir, 'buckets'), { ...environment, tempDir });
    await ensureFolder(store.#root);
    for (const name of await readdir(store.#root)) {
      store.#buckets.set(name, await Bucket.open(join(store.#root, name), store.#environment));
    }
    return store;
  }

  /**
   * Returns the bucket of this name.
   * @throws S3Error `NoSuchBucket`
   */
  get(name: string): Bucket {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) throw new S3Error('NoSuchBucket', { details: { BucketName: name } });
    return bucket;
  }

  async create(name: string): Promise<void> {
    // A bucket's name is used as a folder name, so S3's rules for names also keep it inside the root.
    if (!isBucketName(name)) throw new S3Error('InvalidBucketName', { details: { BucketName: name } });
    if (this.#buckets.has(name) || this.#creating.has(name)) {
      throw new S3Error('BucketAlreadyOwnedByYou', { details: { BucketName: name } });
    }
    this.#creating.add(name);
    try {
      this.#buckets.set(name, await Bucket.open(join(this.#root, name), this.#environment));
    } finally {
      this.#creating.delete(name);
    }
  }

  async delete(name: string): Promise<void> {
    const bucket = this.get(name);
    if (!(await bucket.remove())) throw new S3Error('BucketNotEmpty', { details: { BucketName: name } });
    this.#buckets.delete(name);
    await syncFolder(this.#root);
  }

  /** Deletes expired objects and unfinished uploads, and returns how many there were. */
  async sweep(): Promise<number> {
    let count = 0;
    for (const bucket of this.#buckets.values()) count += await bucket.sweep();
    return count;
  }
}

function isBucketName(name: string): boolean {
  return (
    /^[a-z\d][a-z\d.-]{1,61}[a-z\d]$/.test(name) &&
    !name.includes('..') &&
    !/^\d{1,3}(?:\.\d{1,3}){3}$/.test(name)
  );
}
