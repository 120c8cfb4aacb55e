import { addAbortSignal, type Readable } from 'node:stream';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  PutBucketLifecycleConfigurationCommand,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import type { Config } from '../runtime/config.ts';

/** What a range of an object tells of the whole of it. */
export interface ReadRange {
  /** How many bytes were read. */
  readonly byteLength: number;
  readonly objectBytes: number;
  readonly contentType: string;
  readonly storedAt: Date;
}

const ignore = (): void => undefined;
const quietLogger = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

/** How long an image's link works. S3 deletes by whole days, so readers check the age themselves as well. */
export const objectLifetimeMs = 24 * 60 * 60 * 1_000;

const hasStatus = (error: unknown, ...statuses: number[]): boolean =>
  error instanceof S3ServiceException && statuses.includes(error.$metadata.httpStatusCode ?? 0);

/** The bucket of generated files, through any server that speaks S3. */
export class ObjectStore {
  readonly #client: S3Client;
  readonly #bucket: string;

  constructor(config: Config['s3']) {
    this.#bucket = config.bucket;
    this.#client = new S3Client({
      endpoint: config.endpoint,
      region: config.region,
      credentials: { accessKeyId: config.accessKeyId, secretAccessKey: config.secretAccessKey },
      forcePathStyle: true,
      maxAttempts: 3,
      // Of a stream that it cannot send again the SDK would write to the console; the caller is told by the error.
      logger: quietLogger,
      requestHandler: { connectionTimeout: 2_000, requestTimeout: 30_000 },
    });
  }

  /** Makes the bucket and its 24-hour rule where they are missing; safe to run from several processes at once. */
  async prepareBucket(): Promise<void> {
    try {
      await this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket }));
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
      try {
        await this.#client.send(new CreateBucketCommand({ Bucket: this.#bucket }));
      } catch (raced) {
        if (!hasStatus(raced, 409)) throw raced;
      }
    }
    await this.#client.send(
      new PutBucketLifecycleConfigurationCommand({
        Bucket: this.#bucket,
        LifecycleConfiguration: {
          Rules: [
            { ID: 'expire-after-a-day', Status: 'Enabled', Filter: { Prefix: '' }, Expiration: { Days: 1 } },
          ],
        },
      }),
    );
  }

  async put(key: string, body: Buffer, contentType: string): Promise<void> {
    await this.#client.send(
      new PutObjectCommand({ Bucket: this.#bucket, Key: key, Body: body, ContentType: contentType }),
    );
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
    await this.#client.send(command, { abortSignal: signal });
  }

  /** Some of an object's bytes, held once; null where there are none. */
  async getRange(key: string, from: number, byteLength: number): Promise<Buffer | null> {
    const bytes = Buffer.allocUnsafeSlow(byteLength);
    const read = await this.readRange(key, from, bytes);
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
      const answer = await this.#client.send(command, signal === undefined ? {} : { abortSignal: signal });
      const body = answer.Body as Readable;
      if (signal !== undefined) addAbortSignal(signal, body);
      let at = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) at += chunk.copy(target, at);
      return {
        byteLength: at,
        // As in `bytes 0-99/1234`.
        objectBytes: Number(answer.ContentRange?.split('/')[1] ?? answer.ContentLength),
        contentType: answer.ContentType ?? 'application/octet-stream',
        storedAt: answer.LastModified ?? new Date(0),
      };
    } catch (error) {
      if (hasStatus(error, 404, 416)) return null;
      throw error;
    }
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
