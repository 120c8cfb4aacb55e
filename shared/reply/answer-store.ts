import { Readable } from 'node:stream';
import type { HeldRequest } from '../billing/reservation-store.ts';
import { AppError } from '../contract/errors.ts';
import { answerPrefix } from '../storage/lifecycle-rules.ts';
import type { ObjectStore } from '../storage/object-store.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import { encodeFrame } from './frame.ts';
import type { KeptFramesStore, KeptPart, KeptRequest, KeptSize } from './kept-frames-store.ts';

/** Where a whole answer was put, as a `stored` frame tells it: its reader knows its length before it takes any of it. */
export interface StoredAnswer {
  readonly in: 'objects' | 'redis';
  readonly bytes: number;
  /** Of a durable job: the attempt that brought it. */
  readonly attempt?: number | undefined;
}

/** A durable job whose answer is kept. */
export type KeptJob = KeptRequest & { readonly jobAttempt: number };

export const encodeStored = (stored: StoredAnswer): string => JSON.stringify(stored);

export const decodeStored = (payload: Buffer): StoredAnswer =>
  JSON.parse(payload.toString('utf8')) as StoredAnswer;

/** A store that is there but silent counts as one that is away: readers are not kept waiting for it any longer. */
const longestReadMs = 15_000;

/** What is held of an answer while it is copied to the object store. */
const copyBytes = 256 * 1024;

/**
 * By length as well: a copy that was begun earlier and is shorter never replaces a longer one. Nor does the answer that an
 * attempt at a job brings late replace another's.
 */
const objectKey = (
  { requestId }: HeldRequest,
  { bytes, attempt }: Pick<StoredAnswer, 'bytes' | 'attempt'>,
): string => `${answerPrefix}${requestId}/${attempt === undefined ? '' : `${attempt}/`}${bytes}`;
const contentType = 'application/octet-stream';

/**
 * Answers that are kept for a day and are too large for Redis to hold them so long: whole answers, and the frames of
 * streams that have ended. A request has one of the two.
 */
export class AnswerStore {
  readonly #kept: KeptFramesStore;
  readonly #objects: ObjectStore;
  readonly #readMs: number;

  /** @param readMs how long one read of the object store may take */
  constructor(kept: KeptFramesStore, objects: ObjectStore, readMs = longestReadMs) {
    this.#kept = kept;
    this.#objects = objects;
    this.#readMs = readMs;
  }

  /** @throws AppError `too_many_jobs` where neither store takes it */
  async put(request: KeptRequest, bytes: Buffer): Promise<StoredAnswer> {
    const { jobAttempt: attempt } = request;
    const stored = { bytes: bytes.length, ...(attempt !== undefined && { attempt }) };
    try {
      await this.#objects.put(objectKey(request, stored), bytes, contentType);
      return { in: 'objects', ...stored };
    } catch {
      // The answer was paid for; while the object store is away Redis keeps it.
      await this.#kept.putAnswer(request, bytes);
      return { in: 'redis', ...stored };
    }
  }

  /**
   * Keeps the whole answer that an attempt at a durable job brought: in Redis where it is small and the account has room
   * there. Readers of the job go by its last attempt, so that what an earlier one left behind does not count.
   * @throws AppError `too_many_jobs` where neither store takes it
   */
  async keep(
    request: KeptJob,
    bytes: Buffer,
  ): Promise<{ readonly size: KeptSize } | { readonly stored: StoredAnswer }> {
    const { requestId, jobAttempt: attempt } = request;
    // Readers begin at the first frame: what an earlier attempt kept may even have moved.
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
   * Null where it is gone.
   * @throws AppError `service_unavailable` while its store is away
   */
  async read(request: HeldRequest, stored: StoredAnswer): Promise<Buffer | null> {
    const inRedis = stored.in === 'redis' ? await this.#kept.readAnswer(request) : null;
    // What was put into Redis moves when the object store is back.
    return inRedis ?? (await this.#readObject(objectKey(request, stored), 0, stored.bytes));
  }

  /**
   * @param movedBytes how many have moved in all
   * @throws AppError `service_unavailable` where they are gone or their store is away
   */
  async readMovedFrames(
    request: HeldRequest,
    movedBytes: number,
    from: number,
    byteLength: number,
  ): Promise<Buffer> {
    const key = objectKey(request, { bytes: movedBytes });
    const bytes = await this.#readObject(key, from, Math.min(byteLength, movedBytes - from));
    if (bytes === null || bytes.length === 0) throw answerGone();
    return bytes;
  }

  /**
   * Copies what Redis holds to the object store, a little at a time, and then drops it from Redis.
   * @returns false where it changed or expired meanwhile; it stays as it is then
   * @throws Error while either store is away
   */
  async move(part: KeptPart, request: KeptRequest, bytes: number): Promise<boolean> {
    const kept = this.#kept;
    const stopping = new AbortController();
    let hasChanged = false;
    let failure: unknown = null;
    // An error of its own would not reach the request that it is the body of: it ends the request instead.
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
      // Frames move once their job is settled: they are of the attempt that counts.
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

export const answerGone = (): AppError =>
  new AppError('service_unavailable', {
    message: 'The kept answer is not there any more. Send the request again under another Idempotency-Key.',
    // To try again under the same one, as the code advises, would fail again.
    expose: true,
  });
