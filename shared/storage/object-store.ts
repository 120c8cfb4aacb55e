import { addAbortSignal, type Readable } from 'node:stream';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketLifecycleConfigurationCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutBucketLifecycleConfigurationCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  type GetBucketLifecycleConfigurationCommandOutput,
} from '@aws-sdk/client-s3';
import type { Config } from '../runtime/config.ts';
import { findObjectHeaders, parseFileName } from './file-name.ts';
import { isFormerRule, isOurRule, mergeRules } from './lifecycle-rules.ts';

/** What a range of an object tells of the whole of it. */
export interface ReadRange {
  /** How many bytes were read. */
  readonly byteLength: number;
  readonly objectBytes: number;
}

/** What is known of an object without reading it. */
export interface ObjectFacts {
  readonly objectBytes: number;
  readonly storedAt: Date;
}

/** An object that the store did not delete, and what it said of that. */
export interface FailedDeletion {
  readonly key: string;
  readonly reason: string;
}

const ignore = (): void => undefined;
const quietLogger = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

const hasStatus = (error: unknown, ...statuses: number[]): boolean =>
  error instanceof S3ServiceException && statuses.includes(error.$metadata.httpStatusCode ?? 0);

export interface StoreTimeouts {
  /** One attempt at a request, until the first byte of its answer. */
  readonly attemptMs: number;
  /** All attempts at storing one object. */
  readonly putMs: number;
}

/**
 * A store that accepts connections and then says nothing must not hold callers for longer. A body that is streamed into the
 * store is sent as fast as Redis is read, and bounded by whoever streams it.
 */
const usualTimeouts: StoreTimeouts = { attemptMs: 10_000, putMs: 25_000 };
const streamedPutMs = 120_000;
/** Of reading one object, for which a caller waits: three attempts take 12 s. */
const longestReadMs = 4_000;

/** The bucket of generated files, through any server that speaks S3. */
export class ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #manageBucket: Config['s3']['manageBucket'];
  readonly #putMs: number;
  readonly #readMs: number;

  constructor(config: Config['s3'], { attemptMs, putMs } = usualTimeouts) {
    this.#bucket = config.bucket;
    this.#manageBucket = config.manageBucket;
    this.#putMs = putMs;
    this.#readMs = Math.min(attemptMs, longestReadMs);
    this.#client = new S3Client({
      endpoint: config.endpoint,
      region: config.region,
      credentials: { accessKeyId: config.accessKeyId, secretAccessKey: config.secretAccessKey },
      forcePathStyle: true,
      maxAttempts: 3,
      // Of a stream that it cannot send again the SDK would write to the console; the caller is told by the error.
      logger: quietLogger,
      // Without the last of these, the SDK only warns of an answer that does not come.
      requestHandler: {
        connectionTimeout: 2_000,
        requestTimeout: attemptMs,
        throwOnRequestTimeout: true,
      },
    });
  }

  /**
   * Makes the bucket where it is missing, and our 24-hour rules on a bucket that is ours to manage; safe to run from several
   * processes at once. Rules of others stay as they are.
   * @returns whether our rules are there
   */
  async prepareBucket(): Promise<boolean> {
    const isNew = await this.#createMissingBucket();
    try {
      return await this.#prepareRules(isNew);
    } catch (error) {
      // A server without rules has what we need otherwise, and asking it again would not change that.
      if (hasStatus(error, 501)) return false;
      // Whoever gives us no right to the rules manages the bucket.
      if (hasStatus(error, 403) && this.#manageBucket !== 'on') return false;
      throw error;
    }
  }

  async #prepareRules(isNew: boolean): Promise<boolean> {
    const { Rules = [], TransitionDefaultMinimumObjectSize } = await this.#readRules();
    const hasFormer = Rules.some(isFormerRule);
    const merged = mergeRules(Rules, hasFormer && (await this.#hasFormerFiles()));
    if (merged === null) return true;
    // A bucket with a rule of ours was managed before.
    const isOurs = isNew || Rules.some(isOurRule);
    if (this.#manageBucket === 'off' || (this.#manageBucket === 'auto' && !isOurs)) return false;
    await this.#client.send(
      new PutBucketLifecycleConfigurationCommand({
        Bucket: this.#bucket,
        LifecycleConfiguration: { Rules: merged },
        // S3 would put its default in the place of what the bucket's owner has set.
        ...(TransitionDefaultMinimumObjectSize === undefined ? {} : { TransitionDefaultMinimumObjectSize }),
      }),
    );
    return true;
  }

  /** @returns whether it was missing */
  async #createMissingBucket(): Promise<boolean> {
    try {
      await this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket }));
      return false;
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
    }
    try {
      await this.#client.send(new CreateBucketCommand({ Bucket: this.#bucket }));
    } catch (error) {
      // Another process has made it meanwhile.
      if (!hasStatus(error, 409)) throw error;
    }
    return true;
  }

  async #readRules(): Promise<Partial<GetBucketLifecycleConfigurationCommandOutput>> {
    try {
      return await this.#client.send(new GetBucketLifecycleConfigurationCommand({ Bucket: this.#bucket }));
    } catch (error) {
      // The bucket has no rules.
      if (hasStatus(error, 404)) return {};
      throw error;
    }
  }

  /** Whether images of an earlier version, which are named by no time, still lie at the bucket's root. */
  async #hasFormerFiles(): Promise<boolean> {
    const command = new ListObjectsV2Command({ Bucket: this.#bucket, Delimiter: '/' });
    const { Contents = [] } = await this.#client.send(command);
    return Contents.some(({ Key = '' }) => parseFileName(Key) !== null);
  }

  async put(key: string, body: Buffer, contentType: string): Promise<void> {
    const input = { Bucket: this.#bucket, Key: key, Body: body, ContentType: contentType };
    const abortSignal = AbortSignal.timeout(this.#putMs);
    await this.#client.send(new PutObjectCommand({ ...input, ...findObjectHeaders(key) }), { abortSignal });
  }

  /**
   * Stores so many bytes as they are read, without holding all of them. It is not tried again if it fails.
   * @param signal ends it: there will not be as many bytes
   */
  async putStream(
    key: string,
    body: Readable,
    byteLength: number,
    contentType: string,
    signal: AbortSignal,
  ): Promise<void> {
    const input = { Bucket: this.#bucket, Key: key, Body: body, ContentType: contentType };
    const command = new PutObjectCommand({ ...input, ContentLength: byteLength });
    await this.#client.send(command, { abortSignal: signal, requestTimeout: streamedPutMs });
  }

  /** Some of an object's bytes, held once; null where there are none. */
  async getRange(
    key: string,
    from: number,
    byteLength: number,
    signal?: AbortSignal,
  ): Promise<Buffer | null> {
    const bytes = Buffer.allocUnsafeSlow(byteLength);
    const read = await this.readRange(key, from, bytes, signal);
    return read === null ? null : bytes.subarray(0, read.byteLength);
  }

  /**
   * Fills the target with what an object has from there on. Null where there is none, or none any more, or it has no bytes
   * there. Nothing is held of the store afterwards.
   */
  async readRange(
    key: string,
    from: number,
    target: Buffer,
    signal?: AbortSignal,
  ): Promise<ReadRange | null> {
    try {
      const range = `bytes=${from}-${from + target.length - 1}`;
      const command = new GetObjectCommand({ Bucket: this.#bucket, Key: key, Range: range });
      const answer = await this.#client.send(command, {
        requestTimeout: this.#readMs,
        ...(signal === undefined ? {} : { abortSignal: signal }),
      });
      const body = answer.Body as Readable;
      if (signal !== undefined) addAbortSignal(signal, body);
      if (from > 0 && answer.ContentRange?.startsWith(`bytes ${from}-`) !== true) {
        body.destroy();
        throw new Error(`the object store sent ${answer.ContentRange ?? 'a whole object'} for ${range}`);
      }
      let at = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) at += chunk.copy(target, at);
      return {
        byteLength: at,
        // As in `bytes 0-99/1234`.
        objectBytes: Number(answer.ContentRange?.split('/')[1] ?? answer.ContentLength),
      };
    } catch (error) {
      if (hasStatus(error, 404, 416)) return null;
      throw error;
    }
  }

  /** Null where there is no such object. */
  async describe(key: string, signal: AbortSignal): Promise<ObjectFacts | null> {
    try {
      const command = new HeadObjectCommand({ Bucket: this.#bucket, Key: key });
      const options = { abortSignal: signal, requestTimeout: this.#readMs };
      const { ContentLength = 0, LastModified } = await this.#client.send(command, options);
      return { objectBytes: ContentLength, storedAt: LastModified ?? new Date(0) };
    } catch (error) {
      if (hasStatus(error, 404)) return null;
      throw error;
    }
  }

  /**
   * The first keys of a folder in their order, behind the one given; none where the bucket is not there yet. Fewer than the
   * limit: there are no more.
   */
  async list(prefix: string, limit: number, after: string, signal: AbortSignal): Promise<string[]> {
    const page = { Bucket: this.#bucket, Prefix: prefix, MaxKeys: limit, StartAfter: after };
    try {
      const { Contents = [] } = await this.#client.send(new ListObjectsV2Command(page), {
        abortSignal: signal,
      });
      return Contents.map(({ Key = '' }) => Key);
    } catch (error) {
      if (hasStatus(error, 404)) return [];
      throw error;
    }
  }

  /**
   * Deletes up to 1000 objects in one call; one that is gone already counts as deleted.
   * @returns those that are still there
   */
  async deleteAll(keys: readonly string[], signal: AbortSignal): Promise<FailedDeletion[]> {
    const Delete = { Objects: keys.map((Key) => ({ Key })), Quiet: true };
    const command = new DeleteObjectsCommand({ Bucket: this.#bucket, Delete });
    const { Errors = [] } = await this.#client.send(command, { abortSignal: signal });
    return Errors.map(({ Key = '', Code = '', Message = '' }) => ({
      key: Key,
      reason: `${Code} ${Message}`,
    }));
  }

  async delete(key: string): Promise<void> {
    await this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: key }));
  }

  /** @throws Error where the bucket cannot be reached; the signal's reason */
  async check(signal: AbortSignal): Promise<void> {
    await this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket }), { abortSignal: signal });
  }

  close(): void {
    this.#client.destroy();
  }
}
