/** What was read of buckets that have ended. Redis's clock has passed them, so they do not change any more. */
export class EndedBuckets<T> {
  readonly #read: (bucket: number) => Promise<T>;
  #known: ReadonlyMap<number, T> = new Map();

  constructor(read: (bucket: number) => Promise<T>) {
    this.#read = read;
  }

  /** Forgets all others. One is read after the other, so that reading a whole window does not hold up the process. */
  async get(buckets: readonly number[]): Promise<T[]> {
    const found: T[] = [];
    for (const bucket of buckets) found.push(this.#known.get(bucket) ?? (await this.#read(bucket)));
    this.#known = new Map(buckets.map((bucket, i) => [bucket, found[i]!]));
    return found;
  }
}
