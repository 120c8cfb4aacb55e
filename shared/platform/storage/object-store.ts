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
  type GetBucketLifecycleConfigurationCommandOutput,
  type LifecycleRule,
} from '@aws-sdk/client-s3';
import type { Config } from '../config/config.ts';
import { isLoopbackHost } from '../runtime/address-class.ts';
import { findObjectHeaders } from './file-name.ts';
import { hasStatus } from './has-status.ts';
import { hasExpirations, isOurRule, mergeRules, omitUploads } from './lifecycle-rules.ts';
import { abortOldUploads, MultipartClient } from './multipart-client.ts';
import { ObjectUpload } from './object-upload.ts';

/** Result of reading a range of an object. */
export interface ReadRange {
  /** Number of bytes read. */
  readonly byteLength: number;
  readonly objectBytes: number;
}

/** An object's metadata, available without reading the object. */
export interface ObjectMetadata {
  readonly objectBytes: number;
  readonly storedAt: Date;
}

/** An object that the store failed to delete, and its reason. */
export interface FailedDeletion {
  readonly key: string;
  readonly reason: string;
}

const ignore = (): void => undefined;
const quietLogger = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

export interface UploadOptions {
  /** Makes the calls in progress and all later ones fail. The caller must still call `abort`. */
  readonly signal?: AbortSignal;
}

export interface StoreTimeouts {
  /** Timeout of one attempt at a request, until the first byte of the response. */
  readonly attemptMs: number;
  /** Timeout of all attempts to store one object. */
  readonly putMs: number;
}

/**
 * A store that accepts connections but sends nothing must not delay callers longer than this. A body streamed into the
 * store is sent as fast as Redis is read, so the code that streams it sets the limit.
 */
const defaultTimeouts: StoreTimeouts = { attemptMs: 10_000, putMs: 25_000 };
const streamedPutMs = 120_000;
/** Timeout of each attempt to read an object while a caller waits. Three attempts take 12 s. */
const maxReadMs = 4_000;

/** Hashing a megabyte takes almost a millisecond of the event loop, here and in the store. */
const minUnhashedBytes = 128 * 1024;

/**
 * Leaves the body out of the signature, as the SDK does for streams. Only where the connection itself protects it: TLS
 * does, and within a host nothing changes it.
 */
function leaveUnhashed(command: PutObjectCommand): void {
  command.middlewareStack.add(
    (next) => async (args) => {
      const { headers } = args.request as { readonly headers: Record<string, string> };
      headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD';
      return await next(args);
    },
    { step: 'build', name: 'leaveUnhashed' },
  );
}

const isProtected = (endpoint: string): boolean => {
  const { protocol, hostname } = new URL(endpoint);
  return protocol === 'https:' || isLoopbackHost(hostname);
};

/** The bucket of generated files, on any S3-compatible server. */
export class ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #manageBucket: Config['s3']['manageBucket'];
  readonly #putMs: number;
  readonly #readMs: number;
  readonly #isProtected: boolean;

  constructor(config: Config['s3'], { attemptMs, putMs } = defaultTimeouts) {
    this.#bucket = config.bucket;
    this.#isProtected = isProtected(config.endpoint);
    this.#manageBucket = config.manageBucket;
    this.#putMs = putMs;
    this.#readMs = Math.min(attemptMs, maxReadMs);
    // On Node 20, the SDK warns that a later version will require a newer Node.
    process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
    this.#client = new S3Client({
      endpoint: config.endpoint,
      region: config.region,
      credentials: { accessKeyId: config.accessKeyId, secretAccessKey: config.secretAccessKey },
      forcePathStyle: true,
      // Many servers do not know the checksums and trailers that the SDK adds by default.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      maxAttempts: 3,
      // The SDK logs to the console when it cannot resend a stream, but it also throws an error.
      logger: quietLogger,
      // Without `throwOnRequestTimeout`, the SDK only warns about a response that does not arrive.
      requestHandler: {
        connectionTimeout: 2_000,
        requestTimeout: attemptMs,
        throwOnRequestTimeout: true,
      },
    });
  }

  /**
   * Creates the bucket if it is missing, and sets our rules on a bucket that we manage. Several processes may
   * do this at the same time. Other rules stay unchanged.
   * @returns whether our rules are in place
   */
  async prepareBucket(): Promise<boolean> {
    const isNew = await this.#createMissingBucket();
    try {
      return await this.#prepareRules(isNew);
    } catch (error) {
      // The server does not support lifecycle rules. It can be used without them, and a retry would not help.
      if (hasStatus(error, 501)) return false;
      // If we have no access to the rules, the operator manages the bucket.
      if (hasStatus(error, 403) && this.#manageBucket !== 'on') return false;
      throw error;
    }
  }

  async #prepareRules(isNew: boolean): Promise<boolean> {
    const { Rules = [], TransitionDefaultMinimumObjectSize } = await this.#readRules();
    const merged = mergeRules(Rules);
    if (merged === null) return true;
    // A bucket that has one of our rules was managed by us before.
    const isOurs = isNew || Rules.some(isOurRule);
    if (this.#manageBucket === 'off' || (this.#manageBucket === 'auto' && !isOurs)) {
      return hasExpirations(Rules);
    }
    const write = async (rules: LifecycleRule[]): Promise<void> => {
      await this.#client.send(
        new PutBucketLifecycleConfigurationCommand({
          Bucket: this.#bucket,
          LifecycleConfiguration: { Rules: rules },
          // If this is omitted, S3 resets the owner's setting to the default.
          ...(TransitionDefaultMinimumObjectSize === undefined ? {} : { TransitionDefaultMinimumObjectSize }),
        }),
      );
    };
    try {
      await write(merged);
    } catch (error) {
      if (!hasStatus(error, 400, 501)) throw error;
      await write(omitUploads(merged));
    }
    return true;
  }

  /** @returns whether the bucket was missing */
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
      // Another process has created it in the meantime.
      if (!hasStatus(error, 409)) throw error;
    }
    return true;
  }

  /** Returns whether the bucket exists. */
  async exists(signal: AbortSignal): Promise<boolean> {
    try {
      await this.check(signal);
      return true;
    } catch (error) {
      if (hasStatus(error, 404)) return false;
      throw error;
    }
  }

  /** Returns whether the bucket has our rules, or why that is not known. */
  async findExpirations(): Promise<'set' | 'missing' | 'hidden' | 'unsupported'> {
    try {
      const { Rules = [] } = await this.#readRules();
      return hasExpirations(Rules) ? 'set' : 'missing';
    } catch (error) {
      if (hasStatus(error, 501)) return 'unsupported';
      if (hasStatus(error, 403)) return 'hidden';
      throw error;
    }
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

  async put(key: string, body: Buffer, contentType: string, signal?: AbortSignal): Promise<void> {
    const input = { Bucket: this.#bucket, Key: key, Body: body, ContentType: contentType };
    const timeout = AbortSignal.timeout(this.#putMs);
    const abortSignal = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
    const command = new PutObjectCommand({ ...input, ...findObjectHeaders(key) });
    if (body.length >= minUnhashedBytes && this.#isProtected) leaveUnhashed(command);
    await this.#client.send(command, { abortSignal });
  }

  /**
   * Stores `byteLength` bytes as they are read, without buffering all of them. A failure is not retried.
   * @param signal aborts the upload when the body will not be complete
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

  /**
   * Starts an object that is written piece by piece. Sends nothing yet.
   * @param key must be new, because a failed upload deletes it
   */
  openUpload(key: string, contentType: string, { signal }: UploadOptions = {}): ObjectUpload {
    const parts = new MultipartClient({
      client: this.#client,
      bucket: this.#bucket,
      key,
      contentType,
      requestMs: this.#putMs,
    });
    const target = {
      parts,
      put: (body: Buffer, putSignal: AbortSignal) => this.put(key, body, contentType, putSignal),
      delete: () => this.delete(key),
    };
    return new ObjectUpload(target, signal);
  }

  /**
   * Aborts the unfinished uploads of a folder that were started before a time. Running uploads must not be that old.
   * @returns how many there were; null if the store does not let this service list them
   */
  async abortUploads(prefix: string, startedBeforeMs: number, signal: AbortSignal): Promise<number | null> {
    return await abortOldUploads(this.#client, { bucket: this.#bucket, prefix, startedBeforeMs }, signal);
  }

  /** Returns a range of an object's bytes, in one buffer. Null if there are none. */
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
   * Fills the target with the object's bytes, starting at an offset. Returns null if there is no such object or it has
   * no bytes there. Does not retain any of the store's memory.
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
      const response = await this.#client.send(command, {
        requestTimeout: this.#readMs,
        ...(signal === undefined ? {} : { abortSignal: signal }),
      });
      const body = response.Body as Readable;
      if (signal !== undefined) addAbortSignal(signal, body);
      if (from > 0 && response.ContentRange?.startsWith(`bytes ${from}-`) !== true) {
        body.destroy();
        throw new Error(`the object store sent ${response.ContentRange ?? 'the whole object'} for ${range}`);
      }
      let at = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) at += chunk.copy(target, at);
      return {
        byteLength: at,
        // ContentRange looks like `bytes 0-99/1234`.
        objectBytes: Number(response.ContentRange?.split('/')[1] ?? response.ContentLength),
      };
    } catch (error) {
      if (hasStatus(error, 404, 416)) return null;
      throw error;
    }
  }

  /** Returns null if there is no such object. */
  async describe(key: string, signal: AbortSignal): Promise<ObjectMetadata | null> {
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
   * Lists the keys of a folder that follow the given one, in order, up to the limit. Fewer keys than the limit mean
   * that there are no more. Returns an empty list if the bucket does not exist yet.
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
   * Deletes up to 1000 objects in one call. An object that is already gone counts as deleted.
   * @returns the objects that are still there
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

  /** @throws Error if the bucket cannot be reached; the signal's reason if it aborts */
  async check(signal: AbortSignal): Promise<void> {
    await this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket }), { abortSignal: signal });
  }

  close(): void {
    this.#client.destroy();
  }
}
