import { Readable } from 'node:stream';
import type { HeartbeatRequest } from '../billing/reservation-store.ts';
import { AppError } from '../contract/errors.ts';
import { answerPrefix } from '../storage/lifecycle-rules.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import { encodeFrame } from './frame.ts';
import type { StoredFramesStore, StoredPart, StoredRequest, StoredSize } from './stored-frames-store.ts';

/**
 * Where a whole response is stored, as sent in a `stored` frame. Its reader knows the length before reading any of it.
 */
export interface StoredResponse {
  readonly in: 'objects' | 'redis';
  readonly bytes: number;
  /** For a durable job: the attempt that produced it. */
  readonly attempt?: number | undefined;
}

/** A durable job whose response is kept. */
export type StoredJob = StoredRequest & { readonly jobAttempt: number };

export const encodeStored = (stored: StoredResponse): string => JSON.stringify(stored);

export const decodeStored = (payload: Buffer): StoredResponse =>
  JSON.parse(payload.toString('utf8')) as StoredResponse;

/**
 * A store that accepts connections but stays silent counts as away after this, so that readers do not wait any longer.
 */
const longestReadMs = 15_000;

/** How much of a response is held in memory while it is copied to the object store. */
const copyBytes = 256 * 1024;

/**
 * The key includes the length, so that a shorter copy that was started earlier never replaces a longer one. It includes
 * the attempt, so that the late response of one attempt at a job never replaces another's.
 */
const objectKey = (
  { requestId }: HeartbeatRequest,
  { bytes, attempt }: Pick<StoredResponse, 'bytes' | 'attempt'>,
): string => `${answerPrefix}${requestId}/${attempt === undefined ? '' : `${attempt}/`}${bytes}`;
const contentType = 'application/octet-stream';

/**
 * Responses that are kept for a day and are too large to stay in Redis that long: whole responses, and the frames of
 * streams that have ended. A request has one of the two.
 */
export class ResponseStore {
  readonly #kept: StoredFramesStore;
  readonly #objects: ObjectStore;
  readonly #readMs: number;

  /** @param readMs how long one read of the object store may take */
  constructor(kept: StoredFramesStore, objects: ObjectStore, readMs = longestReadMs) {
    this.#kept = kept;
    this.#objects = objects;
    this.#readMs = readMs;
  }

  /** @throws AppError `too_many_jobs` if neither store takes it */
  async put(request: StoredRequest, bytes: Buffer): Promise<StoredResponse> {
    const { jobAttempt: attempt } = request;
    const stored = { bytes: bytes.length, ...(attempt !== undefined && { attempt }) };
    try {
      await this.#objects.put(objectKey(request, stored), bytes, contentType);
      return { in: 'objects', ...stored };
    } catch {
      // The response has been paid for. Redis keeps it while the object store is away.
      await this.#kept.putResponse(request, bytes);
      return { in: 'redis', ...stored };
    }
  }

  /**
   * Stores the whole response of one attempt at a durable job. It goes to Redis if it is small and the account has
   * space there. Readers use the job's last attempt, so leftovers of an earlier one do not matter.
   * @throws AppError `too_many_jobs` if neither store takes it
   */
  async keep(
    request: StoredJob,
    bytes: Buffer,
  ): Promise<{ readonly size: StoredSize } | { readonly stored: StoredResponse }> {
    const { requestId, jobAttempt: attempt } = request;
    // Readers start at the first frame. What an earlier attempt stored may even have moved.
    if (attempt > 1) await this.#kept.clear(request);
    const header = { requestId, attempt, sequence: 0, tokens: 0 } as const;
    if (bytes.length <= maxInlineBytes) {
      const frame = encodeFrame({ ...header, kind: 'result', payload: bytes });
      const size = await this.#kept.append(request, 'result', frame, { isBounded: true, isAlone: true });
      if (size !== null) return { size };
    }
    const stored = await this.put(request, bytes);
    const payload = Buffer.from(encodeStored(stored));
    const marker = encodeFrame({ ...header, kind: 'stored', payload });
    await this.#kept.append(request, 'stored', marker, { isAlone: true });
    return { stored };
  }

  /**
   * Null if it is gone.
   * @throws AppError `service_unavailable` while its store is away
   */
  async read(request: HeartbeatRequest, stored: StoredResponse): Promise<Buffer | null> {
    const inRedis = stored.in === 'redis' ? await this.#kept.readResponse(request) : null;
    // What was put into Redis moves once the object store is back.
    return inRedis ?? (await this.#readObject(objectKey(request, stored), 0, stored.bytes));
  }

  /**
   * @param movedBytes how many bytes have moved in total
   * @throws AppError `service_unavailable` if they are gone or their store is away
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
   * Copies a value from Redis to the object store in small pieces, and then drops it from Redis.
   * @returns false if it changed or expired meanwhile, and is left as it is
   * @throws Error while either store is away
   */
  async move(part: StoredPart, request: StoredRequest, bytes: number): Promise<boolean> {
    const kept = this.#kept;
    const stopping = new AbortController();
    let hasChanged = false;
    let failure: unknown = null;
    // An error in the body's generator would not reach the request. Aborting the request ends it instead.
    const read = async function* (): AsyncGenerator<Buffer> {
      try {
        for (let at = 0; at < bytes; at += copyBytes) {
          const wanted = Math.min(copyBytes, bytes - at);
          const piece = await kept.readPart(part, request, at, wanted);
          hasChanged = piece.length < wanted;
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
      // Frames move only once their job is settled, so they belong to the attempt that counts.
      const key = objectKey(request, { bytes, attempt: part === 'answer' ? request.jobAttempt : undefined });
      await this.#objects.putStream(key, body, bytes, contentType, stopping.signal);
    } catch (error) {
      if (hasChanged) return false;
      throw failure ?? error;
    } finally {
      body.destroy();
    }
    return await kept.leaveMoved(part, request, bytes);
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

export const responseGone = (): AppError =>
  new AppError('service_unavailable', {
    message: 'The kept answer is not there any more. Send the request again under another Idempotency-Key.',
    // Retrying under the same key, as the error code advises, would fail again.
    expose: true,
  });
