// decision 0031
import { claimLifetimeSeconds } from '../../money/idempotency-claim.ts';
import {
  moveThresholdBytes,
  maxStoredBytesPerResponse,
  maxStoredBytesInFlight,
} from '../../money/stored-bytes.ts';
import type { HeartbeatRequest } from '../../money/reservation-store.ts';
import { AppError } from '../../contract/errors.ts';
import { resumableMinutes } from '../../contract/on-disconnect.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import { decodeFirstFrame, encodeFrame, kindBytes, kindOffset, type FrameKind } from './frame.ts';

/** Longer than the lifetime of the claim that refers to the frames, so that no caller finds half a response. */
const lifetimeSeconds = claimLifetimeSeconds + 60 * 60;

/** From the last frame of a resumable stream. */
const resumableSeconds = resumableMinutes * 60;
/** While a resumable stream runs. Longer than any chat takes. */
const runningSeconds = 2 * 60 * 60;

/** Failures are not replayed. Only readers that are connected now still need them. */
const failureLifetimeSeconds = 5 * 60;

const appendScript = new LuaScript(new URL('./append-frame.lua', import.meta.url), [
  'frames',
  'counter',
  'job',
  'frame',
  'isDelta',
  'isBounded',
  'lifetime',
  'maxBytes',
  'maxStoredBytes',
  'moveThreshold',
  'attempt',
]);
const putScript = new LuaScript(new URL('./put-stored.lua', import.meta.url), [
  'key',
  'counter',
  'job',
  'value',
  'lifetime',
  'maxStoredBytes',
  'attempt',
]);
const replaceScript = new LuaScript(new URL('./replace-stored.lua', import.meta.url), [
  'key',
  'counter',
  'job',
  'value',
  'expectedBytes',
  'attempt',
]);

type AppendReply =
  | [outcome: 'stored', bytes: number, isAboveMoveThreshold: 0 | 1]
  | [outcome: 'full']
  | [outcome: 'overtaken'];
type PutReply = 'stored' | 'full' | 'overtaken';
type ReplaceReply = 'stored' | 'changed' | 'overtaken';

/**
 * Another attempt owns the job by now, or the job has ended. The output of this attempt is not stored, and the caller
 * is not charged for it.
 */
export class AttemptOvertaken extends Error {
  override readonly name = 'AttemptOvertaken';
}

/** The attempt whose output a script stores only if it still owns the job (see fence.lua). */
interface Fence {
  readonly job: string;
  readonly attempt: number | '';
}

/** @param key of the same shard, because a script needs one in place of the job */
const noFence = (key: string): Fence => ({ job: key, attempt: '' });

const fenceOf = ({ accountId, requestId, jobAttempt }: StoredRequest, key: string): Fence =>
  jobAttempt === undefined ? noFence(key) : { job: redisKeys.job(accountId, requestId), attempt: jobAttempt };

/** The two Redis values of a request: its frames, and a complete response while the object store is unavailable. */
export type StoredPart = 'frames' | 'answer';

export interface StoredSize {
  /** Total size of this request's frames. */
  readonly bytes: number;
  /** Whether the account has so many bytes in Redis that its smaller responses should move, too. */
  readonly isAboveMoveThreshold: boolean;
}

/** A request whose response is stored. */
export interface StoredRequest extends HeartbeatRequest {
  /** Set if the response is stored only so that its stream can be resumed. */
  readonly isResumable?: true | undefined;
  /** The attempt of a durable job; absent for other requests. Bytes stored for jobs are counted separately. */
  readonly jobAttempt?: number | undefined;
}

const isLast = (kind: FrameKind): boolean => kind !== 'accepted' && kind !== 'delta';

function chooseLifetimeSeconds({ isResumable }: StoredRequest, kind: FrameKind): number {
  if (isResumable === true) return isLast(kind) ? resumableSeconds : runningSeconds;
  return kind === 'error' ? failureLifetimeSeconds : lifetimeSeconds;
}

const keyOf = (part: StoredPart, { accountId, requestId }: HeartbeatRequest): string =>
  part === 'frames'
    ? redisKeys.storedFrames(accountId, requestId)
    : redisKeys.storedResponse(accountId, requestId);

const counterOf = ({ accountId, jobAttempt }: StoredRequest): string =>
  jobAttempt === undefined ? redisKeys.storedBytes(accountId) : redisKeys.jobStoredBytes(accountId);

/**
 * Stored responses in Redis: those under Idempotency-Keys and those of durable jobs. The frames of a request are
 * concatenated in one string, so that a reader can read any number of bytes from any offset.
 */
export class StoredFramesStore {
  readonly #redis: RedisClient;
  readonly #payloads: RedisClient;

  /** @param payloads a separate connection for reads, so that small commands do not wait behind them */
  constructor(redis: RedisClient, payloads: RedisClient) {
    this.#redis = redis;
    this.#payloads = payloads;
  }

  /** Whether this is a resumable stream of the account that still runs or whose frames are stored. */
  async canResume(request: HeartbeatRequest): Promise<boolean> {
    const { accountId, requestId } = request;
    const [isResumable, isStored, isRunning] = await callRedis(() =>
      Promise.all([
        this.#redis.exists(redisKeys.resumableStream(accountId, requestId)),
        this.#redis.exists(keyOf('frames', request)),
        this.#redis.hexists(redisKeys.reservations(shardOf(accountId)), requestId),
      ]),
    );
    return isResumable === 1 && isStored + isRunning > 0;
  }

  /**
   * Appends a frame. Returns null if it was not stored because a limit is reached.
   * @param isBounded whether the frame may be rejected: true for deltas and for frames that can be stored elsewhere
   * @param isOnlyInFlight whether no other frame of the request is in flight, so that the order cannot change
   */
  async append(
    request: StoredRequest,
    kind: FrameKind,
    frame: Buffer,
    { isBounded = kind === 'delta', isOnlyInFlight = false } = {},
  ): Promise<StoredSize | null> {
    const frames = keyOf('frames', request);
    const values = {
      frames,
      counter: counterOf(request),
      ...fenceOf(request, frames),
      frame,
      isDelta: kind === 'delta' ? 1 : 0,
      isBounded: isBounded ? 1 : 0,
      lifetime: chooseLifetimeSeconds(request, kind),
      maxBytes: maxStoredBytesPerResponse,
      maxStoredBytes: maxStoredBytesInFlight,
      moveThreshold: moveThresholdBytes,
    };
    const [outcome, bytes, isAbove] = (await callRedis(() =>
      isOnlyInFlight
        ? appendScript.run(this.#redis, values)
        : // `run` could change the order of frames while the script is being loaded.
          appendScript.runInOrder(this.#redis, values),
    )) as AppendReply;
    if (outcome === 'overtaken') throw new AttemptOvertaken();
    if (request.isResumable === true && isLast(kind)) this.#expireMark(request);
    return outcome === 'full' ? null : { bytes, isAboveMoveThreshold: isAbove === 1 };
  }

  /**
   * Reads bytes of a request's frames; empty if there are no more yet. If the frames have moved to the object store,
   * returns how many bytes are there. Offsets are the same in both stores.
   */
  async readFrames(
    request: HeartbeatRequest,
    from: number,
    maxBytes: number,
  ): Promise<{ readonly bytes: Buffer } | { readonly movedBytes: number }> {
    const key = keyOf('frames', request);
    const [bytes, kind] = await callRedis(() =>
      // In this order, a move between the two reads is always detected.
      Promise.all([
        this.#payloads.getrangeBuffer(key, from, from + maxBytes - 1),
        this.#payloads.getrangeBuffer(key, kindOffset, kindOffset),
      ]),
    );
    if (kind[0] !== kindBytes.moved) return { bytes };
    const marker = await callRedis(() => this.#payloads.getBuffer(key));
    // Null if it has just expired; nothing refers to it then.
    const first = marker === null ? null : decodeFirstFrame(marker);
    return first === null ? { bytes: Buffer.alloc(0) } : { movedBytes: Number(first.frame.payload) };
  }

  /** Reads bytes of a part. Returns fewer than requested at its end. */
  async readPart(
    part: StoredPart,
    request: HeartbeatRequest,
    from: number,
    maxBytes: number,
  ): Promise<Buffer> {
    const key = keyOf(part, request);
    return await callRedis(() => this.#payloads.getrangeBuffer(key, from, from + maxBytes - 1));
  }

  /** Returns null if there is none. */
  async readResponse(request: HeartbeatRequest): Promise<Buffer | null> {
    return await callRedis(() => this.#payloads.getBuffer(keyOf('answer', request)));
  }

  /** Deletes the frames of a request before another attempt stores its own. */
  async clear(request: StoredRequest): Promise<void> {
    await this.#replace('frames', request, Buffer.alloc(0), '', fenceOf(request, keyOf('frames', request)));
  }

  /** @throws AppError `too_many_jobs` if the account already has too many bytes in Redis */
  async putResponse(request: StoredRequest, bytes: Buffer): Promise<void> {
    const key = keyOf('answer', request);
    const values = {
      key,
      counter: counterOf(request),
      ...fenceOf(request, key),
      value: bytes,
      lifetime: lifetimeSeconds,
      maxStoredBytes: maxStoredBytesInFlight,
    };
    const outcome = (await callRedis(() => putScript.run(this.#payloads, values))) as PutReply;
    if (outcome === 'overtaken') throw new AttemptOvertaken();
    const message = request.jobAttempt === undefined ? tooMuchStoredMessage : tooMuchStoredForJobsMessage;
    if (outcome === 'full') throw new AppError('too_many_jobs', { message });
  }

  /**
   * Replaces a part that was copied to the object store: frames with a marker, a response with nothing.
   * @param bytes the part's length when it was copied
   * @returns false if the part changed or expired since; it is not replaced then
   */
  async markMoved(part: StoredPart, request: StoredRequest, bytes: number): Promise<boolean> {
    const { requestId } = request;
    const header = { requestId, attempt: 0, sequence: 0, kind: 'moved', tokens: 0 } as const;
    const marker =
      part === 'frames' ? encodeFrame({ ...header, payload: Buffer.from(String(bytes)) }) : Buffer.alloc(0);
    return await this.#replace(part, request, marker, bytes, noFence(keyOf(part, request)));
  }

  /** Whether any frame of the request, or the marker of where they have moved, is stored. */
  async hasFrames(request: HeartbeatRequest): Promise<boolean> {
    return (await callRedis(() => this.#redis.exists(keyOf('frames', request)))) === 1;
  }

  /** Deletes everything of a request that has ended. */
  async delete(request: StoredRequest): Promise<void> {
    for (const part of ['answer', 'frames'] as const)
      await this.#replace(part, request, Buffer.alloc(0), '', noFence(keyOf(part, request)));
  }

  async #replace(
    part: StoredPart,
    request: StoredRequest,
    value: Buffer,
    expectedBytes: number | '',
    fence: Fence,
  ): Promise<boolean> {
    const key = keyOf(part, request);
    const values = { key, counter: counterOf(request), value, expectedBytes, ...fence };
    const outcome = (await callRedis(() => replaceScript.run(this.#redis, values))) as ReplaceReply;
    if (outcome === 'overtaken') throw new AttemptOvertaken();
    return outcome === 'stored';
  }

  /** The mark of a resumable stream need not outlive its frames. It expires by itself later if this fails. */
  #expireMark({ accountId, requestId }: StoredRequest): void {
    const mark = redisKeys.resumableStream(accountId, requestId);
    this.#redis.expire(mark, 2 * resumableSeconds).catch(() => undefined);
  }
}

const megabytes = (bytes: number): number => bytes / 1_000_000;

/** The message for a caller whose response is not stored. The caller pays for the usage. */
export const tooMuchStoredMessage =
  'The response is too large to store. With an Idempotency-Key or X-On-Disconnect, a response can have up to ' +
  `${megabytes(maxStoredBytesPerResponse)} MB, and all responses in progress of an account up to ` +
  `${megabytes(maxStoredBytesInFlight)} MB in total. Send fewer such requests at once, or send this one without the header.`;

/** The message for a job whose response cannot be stored. The caller is not charged. */
const tooMuchStoredForJobsMessage =
  'The response could not be stored, and nothing was charged: the object store is unavailable, and responses of the ' +
  `account's other jobs already take up ${megabytes(maxStoredBytesInFlight)} MB. Create fewer jobs, and create this one again later.`;
