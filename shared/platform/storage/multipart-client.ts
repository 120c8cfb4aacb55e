import { randomUUID } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  S3ServiceException,
  UploadPartCommand,
  type AbortMultipartUploadCommandInput,
  type ListMultipartUploadsCommandOutput,
  type S3Client,
} from '@aws-sdk/client-s3';
import { findObjectHeaders } from './file-name.ts';
import { hasStatus } from './has-status.ts';

/** S3's own limit. */
export const maxParts = 10_000;

/** Timeout of all attempts to complete an upload. A store may have to copy all parts. */
const completeMs = 120_000;

export interface MultipartOptions {
  readonly client: S3Client;
  readonly bucket: string;
  readonly key: string;
  readonly contentType: string;
  /** Timeout of all attempts at one request. */
  readonly requestMs: number;
}

/** The calls of one multipart upload. Each is retried like all calls of the store. */
export class MultipartClient {
  readonly #options: MultipartOptions;
  readonly #target: { readonly Bucket: string; readonly Key: string };
  /** Stored with the object, to recognize it. */
  readonly #mark = randomUUID();
  #uploadId: string | undefined;

  constructor(options: MultipartOptions) {
    this.#options = options;
    this.#target = { Bucket: options.bucket, Key: options.key };
  }

  /** Stores a part, and starts the upload with the first one. Returns the part's ETag. */
  async putPart(partNumber: number, body: Buffer, signal: AbortSignal): Promise<string> {
    this.#uploadId ??= await this.#create();
    const part = { ...this.#target, UploadId: this.#uploadId, PartNumber: partNumber, Body: body };
    const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(this.#options.requestMs)]);
    const { ETag = '' } = await this.#options.client.send(new UploadPartCommand(part), { abortSignal });
    return ETag;
  }

  /**
   * Assembles the object.
   * @param etags of all parts, in order
   */
  async complete(etags: readonly string[], signal: AbortSignal): Promise<void> {
    const command = new CompleteMultipartUploadCommand({
      ...this.#target,
      UploadId: this.#uploadId,
      MultipartUpload: { Parts: etags.map((ETag, index) => ({ PartNumber: index + 1, ETag })) },
    });
    const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(completeMs)]);
    try {
      // A store may send nothing while it copies the parts.
      await this.#options.client.send(command, { abortSignal, requestTimeout: completeMs });
    } catch (error) {
      // If an attempt succeeds but its response is lost, the upload no longer exists when the SDK tries again.
      const mayBeComplete = error instanceof S3ServiceException && error.name === 'NoSuchUpload';
      if (!mayBeComplete || !(await this.#isComplete(abortSignal))) throw error;
    }
  }

  /** Removes the upload and its parts, if it exists. */
  async abort(): Promise<void> {
    if (this.#uploadId === undefined) return;
    const upload = { ...this.#target, UploadId: this.#uploadId };
    await abortUpload(this.#options.client, upload, AbortSignal.timeout(this.#options.requestMs));
  }

  /** Cannot be aborted by the caller: without the id in the response, the upload could not be removed. */
  async #create(): Promise<string> {
    const command = new CreateMultipartUploadCommand({
      ...this.#target,
      ...findObjectHeaders(this.#options.key),
      ContentType: this.#options.contentType,
      Metadata: { upload: this.#mark },
    });
    const abortSignal = AbortSignal.timeout(this.#options.requestMs);
    const { UploadId } = await this.#options.client.send(command, { abortSignal });
    if (!UploadId) throw new Error('the object store returned no upload id');
    return UploadId;
  }

  async #isComplete(abortSignal: AbortSignal): Promise<boolean> {
    try {
      const command = new HeadObjectCommand(this.#target);
      const { Metadata = {} } = await this.#options.client.send(command, { abortSignal });
      return Metadata['upload'] === this.#mark;
    } catch (error) {
      if (hasStatus(error, 404)) return false;
      throw error;
    }
  }
}

/**
 * Aborts the unfinished uploads of a folder that were started before a time.
 * @returns how many there were; null if the store does not let this service list them
 */
export async function abortOldUploads(
  client: S3Client,
  query: { readonly bucket: string; readonly prefix: string; readonly startedBeforeMs: number },
  abortSignal: AbortSignal,
): Promise<number | null> {
  const { bucket: Bucket, prefix: Prefix, startedBeforeMs } = query;
  let count = 0;
  let firstFailure: unknown = null;
  try {
    for (let markers: UploadMarkers | null = {}; markers !== null && !abortSignal.aborted;) {
      const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({
        Bucket,
        Prefix,
        ...markers,
      });
      const page = await client.send(command, { abortSignal });
      for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
        // An upload without a time may have just been started.
        if (Initiated === undefined || Initiated.getTime() >= startedBeforeMs) continue;
        try {
          if (await abortUpload(client, { Bucket, Key, UploadId }, abortSignal)) count += 1;
        } catch (error) {
          // Go on: one upload must not keep the others from being aborted.
          firstFailure ??= error;
        }
      }
      markers = findNextPage(page);
    }
  } catch (error) {
    // The bucket does not exist yet.
    if (hasStatus(error, 404)) return count;
    if (hasStatus(error, 403, 405, 501)) return null;
    throw error;
  }
  if (firstFailure !== null)
    throw new Error('an unfinished upload could not be aborted', { cause: firstFailure });
  return count;
}

interface UploadMarkers {
  readonly KeyMarker?: string;
  readonly UploadIdMarker?: string;
}

function findNextPage(page: ListMultipartUploadsCommandOutput): UploadMarkers | null {
  const { IsTruncated, NextKeyMarker = '', NextUploadIdMarker = '' } = page;
  if (IsTruncated !== true || NextKeyMarker === '') return null;
  return { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker };
}

/** @returns whether the upload existed */
async function abortUpload(
  client: S3Client,
  upload: AbortMultipartUploadCommandInput,
  abortSignal: AbortSignal,
): Promise<boolean> {
  try {
    await client.send(new AbortMultipartUploadCommand(upload), { abortSignal });
    return true;
  } catch (error) {
    if (hasStatus(error, 404)) return false;
    throw error;
  }
}
