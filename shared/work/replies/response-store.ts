// decision 0031
import { Readable } from 'node:stream';
import type { HeartbeatRequest } from '../../money/reservation-store.ts';
import { AppError } from '../../contract/errors.ts';
import { answerPrefix } from '../../platform/storage/lifecycle-rules.ts';
import type { ObjectStore } from '../../platform/storage/object-store.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import { decodeFrameStart, encodeFrame, frameHeaderBytes } from './frame.ts';
import type { StoredFramesStore, StoredPart, StoredRequest, StoredSize } from './stored-frames-store.ts';

/**
 * Where a complete response is stored, as sent in a `stored` frame. Readers know its length before they read it.
 */
export interface StoredResponse {
  readonly in: 'objects' | 'redis';
  readonly bytes: number;
  /** For a durable job: the attempt that produced it. */
  readonly attempt?: number | undefined;
}

/** A durable job whose response is stored. */
export type StoringRequest = StoredRequest & { readonly jobAttempt: number };

export const encodeStored = (stored: StoredResponse): string => JSON.stringify(stored);

export const decodeStored = (payload: Buffer): StoredResponse =>
  JSON.parse(payload.toString('utf8')) as StoredResponse;

/** Maximum time of a read. A store that accepts connections but does not respond counts as unavailable after this. */
const maxReadMs = 15_000;

/** More than the copies of one response that its attempts can have left, of thirty at most. */
const maxCopies = 100;

const emptyBuffer = Buffer.alloc(0);

/** How much of a response is in memory while it is copied to the object store. */
const copyBytes = 256 * 1024;

/**
 * The key includes the length, so that a shorter copy that was started earlier never replaces a longer one. It includes
 * the attempt, so that a late response of one attempt at a job never replaces that of another.
 */
const objectKey = (
  { requestId }: HeartbeatRequest,
  { bytes, attempt }: Pick<StoredResponse, 'bytes' | 'attempt'>,
): string => `${answerPrefix}${requestId}/${attempt === undefined ? '' : `${attempt}/`}${bytes}`;
const contentType = 'application/octet-stream';

/**
 * Stores, for a day, responses that are too large to stay in Redis for that long: complete responses, and the frames of
 * finished streams. Each request has either a complete response or frames.
 */
export class ResponseStore {
  readonly #frames: StoredFramesStore;
  readonly #objects: ObjectStore;
  readonly #readMs: number;

  /** @param readMs how long one read of the object store may take */
  constructor(frames: StoredFramesStore, objects: ObjectStore, readMs = maxReadMs) {
    this.#frames = frames;
    this.#objects = objects;
    this.#readMs = readMs;
  }

  /** @throws AppError `too_many_jobs` if neither store can take it */
  async put(request: StoredRequest, bytes: Buffer): Promise<StoredResponse> {
    const { jobAttempt: attempt } = request;
    const stored = { bytes: bytes.length, ...(attempt !== undefined && { attempt }) };
    try {
      await this.#objects.put(objectKey(request, stored), bytes, contentType);
      return { in: 'objects', ...stored };
    } catch {
      // The vendor has already billed the response, so it must not be lost. Store it in Redis instead.
      await this.#frames.putResponse(request, bytes);
      return { in: 'redis', ...stored };
    }
  }

  /**
   * Stores the complete response of one attempt at a durable job: in Redis if it is small and the account has space
   * there. Readers use the job's last attempt, so data left by an earlier one does not matter.
   * @throws AppError `too_many_jobs` if neither store can take it
   */
  async keep(
    request: StoringRequest,
    bytes: Buffer,
  ): Promise<{ readonly size: StoredSize } | { readonly stored: StoredResponse }> {
    const { requestId, jobAttempt: attempt } = request;
    // Readers start at the first frame, which may belong to an earlier attempt and may even have moved.
    if (attempt > 1) await this.#frames.clear(request);
    const header = { requestId, attempt, sequence: 0, tokens: 0 } as const;
    if (bytes.length <= maxInlineBytes) {
      const frame = encodeFrame({ ...header, kind: 'result', payload: bytes });
      const size = await this.#frames.append(request, 'result', frame, {
        isBounded: true,
        isOnlyInFlight: true,
      });
      if (size !== null) return { size };
    }
    const stored = await this.put(request, bytes);
    const payload = Buffer.from(encodeStored(stored));
    const marker = encodeFrame({ ...header, kind: 'stored', payload });
    await this.#frames.append(request, 'stored', marker, { isOnlyInFlight: true });
    return { stored };
  }

  /**
   * Returns null if the response is gone.
   * @throws AppError `service_unavailable` while its store is unavailable
   */
  async read(request: HeartbeatRequest, stored: StoredResponse): Promise<Buffer | null> {
    const inRedis = stored.in === 'redis' ? await this.#frames.readResponse(request) : null;
    // A response stored in Redis moves once the object store is available again.
    return inRedis ?? (await this.#readObject(objectKey(request, stored), 0, stored.bytes));
  }

  /**
   * @param movedBytes how many bytes have moved in total
   * @throws AppError `service_unavailable` if the frames are gone or their store is unavailable
   */
  async readMovedFrames(
    request: HeartbeatRequest,
    movedBytes: number,
    from: number,
    byteLength: number,
  ): Promise<Buffer> {
    const key = objectKey(request, { bytes: movedBytes });
    const bytes = await this.#readObject(key, from, Math.min(byteLength, movedBytes - from));
    if (bytes === null || bytes.length === 0) throw responseGone();
    return bytes;
  }

  /**
   * Copies a value from Redis to the object store in small pieces, and then removes it from Redis.
   * @returns false if the value changed or expired during the copy; it is not removed then
   * @throws Error while either store is unavailable
   */
  async move(part: StoredPart, request: StoredRequest, bytes: number): Promise<boolean> {
    const frames = this.#frames;
    const stopping = new AbortController();
    let hasChanged = false;
    let failure: unknown = null;
    // An error in the body's generator would not reach the request, so abort the request instead.
    const read = async function* (): AsyncGenerator<Buffer> {
      try {
        for (let at = 0; at < bytes; at += copyBytes) {
          const length = Math.min(copyBytes, bytes - at);
          const piece = await frames.readPart(part, request, at, length);
          hasChanged = piece.length < length;
          if (hasChanged) break;
          yield piece;
        }
      } catch (error) {
        failure = error;
      }
      if (hasChanged || failure !== null) stopping.abort();
    };
    const body = Readable.from(read(), { objectMode: false });
    try {
      // Frames move only after their job is settled, so they belong to the attempt that was settled.
      const key = objectKey(request, { bytes, attempt: part === 'answer' ? request.jobAttempt : undefined });
      await this.#objects.putStream(key, body, bytes, contentType, stopping.signal);
    } catch (error) {
      if (hasChanged) return false;
      throw failure ?? error;
    } finally {
      body.destroy();
    }
    const isMoved = await frames.markMoved(part, request, bytes);
    // Nothing refers to the copy of a response that was deleted in the meantime.
    if (!isMoved && !(await frames.hasFrames(request)))
      await this.#objects.delete(
        objectKey(request, { bytes, attempt: part === 'answer' ? request.jobAttempt : undefined }),
      );
    return isMoved;
  }

  /**
   * Reads the beginning of the complete response of a durable job.
   * @returns at most this many bytes; null if there is none
   * @throws AppError `service_unavailable` while its store is unavailable
   */
  async readStart(request: HeartbeatRequest, byteLength: number): Promise<Buffer | null> {
    const readMoved = async (bytes: number): Promise<Buffer | null> =>
      await this.#readObject(
        objectKey(request, { bytes }),
        0,
        Math.min(bytes, frameHeaderBytes + byteLength),
      );
    const read = await this.#frames.readFrames(request, 0, frameHeaderBytes + byteLength);
    const bytes = 'bytes' in read ? read.bytes : await readMoved(read.movedBytes);
    const first = bytes === null ? null : decodeFrameStart(bytes);
    if (first === null) return null;
    if (first.kind === 'result') return first.payload.subarray(0, byteLength);
    if (first.kind !== 'stored') return null;
    const stored = decodeStored(first.payload);
    const length = Math.min(stored.bytes, byteLength);
    const inRedis =
      stored.in === 'redis' ? await this.#frames.readPart('answer', request, 0, length) : emptyBuffer;
    return inRedis.length > 0 ? inRedis : await this.#readObject(objectKey(request, stored), 0, length);
  }

  /**
   * Deletes everything that is stored of the response of a durable job that has ended, at all of its attempts.
   * @throws AppError `service_unavailable` if a store is unavailable; the call can be repeated
   */
  async delete(request: StoringRequest): Promise<void> {
    // In this order, a copy that is being made of them is either listed below or deleted by the code that makes it.
    await this.#frames.delete(request);
    const signal = AbortSignal.timeout(this.#readMs);
    try {
      const keys = await this.#objects.list(`${answerPrefix}${request.requestId}/`, maxCopies, '', signal);
      await deleteObjects(this.#objects, keys, signal);
    } catch (error) {
      throw new AppError('service_unavailable', { cause: error });
    }
  }

  async #readObject(key: string, from: number, byteLength: number): Promise<Buffer | null> {
    try {
      const signal = AbortSignal.timeout(this.#readMs);
      return await this.#objects.getRange(key, from, byteLength, signal);
    } catch (error) {
      throw new AppError('service_unavailable', { cause: error });
    }
  }
}

/** @throws Error if any of them is still there */
export async function deleteObjects(
  objects: Pick<ObjectStore, 'deleteAll'>,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (keys.length === 0) return;
  const [failed] = await objects.deleteAll(keys, signal);
  if (failed !== undefined) throw new Error(`an object was not deleted: ${failed.reason}`);
}

export const responseGone = (): AppError =>
  new AppError('service_unavailable', {
    message: 'The stored response is no longer available. Send the request again with a new Idempotency-Key.',
    // Retrying under the same key, as the error code advises, would fail again.
    expose: true,
  });
