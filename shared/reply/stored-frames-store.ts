import { claimLifetimeSeconds } from '../billing/idempotency-claim.ts';
import {
  moveThresholdBytes,
  storedBytesFunctions,
  maxStoredBytesPerResponse,
  maxStoredBytesInFlight,
} from '../billing/stored-bytes.ts';
import type { HeartbeatRequest } from '../billing/reservation-store.ts';
import { AppError } from '../contract/errors.ts';
import { resumableMinutes } from '../contract/on-disconnect.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import { decodeFirstFrame, encodeFrame, kindBytes, kindOffset, type FrameKind } from './frame.ts';

/** Longer than the lifetime of the claim that refers to the frames, so that no caller finds half a response. */
const lifetimeSeconds = claimLifetimeSeconds + 60 * 60;

/** From the last frame of a resumable stream. */
const resumableSeconds = resumableMinutes * 60;
/** While a resumable stream runs. Longer than any chat takes. */
const runningSeconds = 2 * 60 * 60;

/** Failures are not replayed. Only readers that are connected now still need them. */
const failureLifetimeSeconds = 5 * 60;

/**
 * Lua: returns whether an attempt at a durable job is overtaken: another attempt owns the job by now, or the job has
 * ended. Its late output must not replace the output that the caller was charged for. In a job's record, `st` is the
 * status (`q` queued, `a` active) and `n` the current attempt.
 */
const fenceFunction = `
local function isOvertaken(record, attempt)
  if not record then return false end
  local r = redis.call('HMGET', record, 'st', 'n')
  return r[1] and (r[2] ~= attempt or (r[1] ~= 'q' and r[1] ~= 'a'))
end
`;

/**
 * Appends a frame and counts its bytes. Rejects a bounded frame if a limit is reached. Unbounded frames are small. For
 * frames that are not deltas, also returns whether the account has more than `moveThresholdBytes` in Redis.
 */
const appendScript = new RedisScript(`${storedBytesFunctions}${fenceFunction}
local frames, counter = KEYS[1], KEYS[2]
if isOvertaken(KEYS[3], ARGV[8]) then return {-1, 0} end
local frame, isDelta, isBounded, lifetime = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local before = redis.call('STRLEN', frames)
if isBounded and (before + #frame > tonumber(ARGV[5]) or storedBytesExceed(counter, tonumber(ARGV[6]) - #frame)) then
  return {0, 0}
end
local length = redis.call('APPEND', frames, frame)
local expiresAt = before > 0 and redis.call('EXPIRETIME', frames) or -1
if expiresAt < 0 or not isDelta then
  local newExpiry = endOfBucket(redis.call('TIME')[1] + lifetime)
  if expiresAt > 0 then changeStoredBytes(counter, expiresAt, -before) end
  redis.call('EXPIREAT', frames, newExpiry)
  changeStoredBytes(counter, newExpiry, length)
else
  changeStoredBytes(counter, expiresAt, #frame)
end
return {length, not isDelta and storedBytesExceed(counter, tonumber(ARGV[7])) and 1 or 0}
`);

/**
 * Sets a value, with a given lifetime or for the remaining lifetime of the previous value. An empty value deletes it.
 * If the previous value does not have the expected length, another process has changed it, and it stays unchanged.
 */
const replaceScript = new RedisScript(`${storedBytesFunctions}${fenceFunction}
local key, counter = KEYS[1], KEYS[2]
if isOvertaken(KEYS[3], ARGV[5]) then return -1 end
local value, expected, lifetime = ARGV[1], ARGV[2], ARGV[3]
local before = redis.call('STRLEN', key)
if expected ~= '' and before ~= tonumber(expected) then return 0 end
if before == 0 and value == '' then return 1 end
local expiresAt = redis.call('EXPIRETIME', key)
if lifetime ~= '' then
  if storedBytesExceed(counter, tonumber(ARGV[4]) - #value) then return 0 end
  if before > 0 then changeStoredBytes(counter, expiresAt, -before) end
  expiresAt = endOfBucket(redis.call('TIME')[1] + tonumber(lifetime))
else
  changeStoredBytes(counter, expiresAt, -before)
end
if value == '' then
  redis.call('UNLINK', key)
else
  redis.call('SET', key, value, 'EXAT', expiresAt)
  changeStoredBytes(counter, expiresAt, #value)
end
return 1
`);

/**
 * Another attempt owns the job by now, or the job has ended. The output of this attempt is not stored, and the caller
 * is not charged for it.
 */
export class AttemptOvertaken extends Error {
  override readonly name = 'AttemptOvertaken';
}

interface Fence {
  readonly keys: readonly string[];
  readonly args: readonly number[];
}

const noFence: Fence = { keys: [], args: [] };

function fenceOf({ accountId, requestId, jobAttempt }: StoredRequest): Fence {
  return jobAttempt === undefined
    ? noFence
    : { keys: [redisKeys.job(accountId, requestId)], args: [jobAttempt] };
}

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
    const fence = fenceOf(request);
    const keys = [...this.#keys('frames', request), ...fence.keys];
    const args = [
      frame,
      kind === 'delta' ? 1 : 0,
      isBounded ? 1 : 0,
      chooseLifetimeSeconds(request, kind),
      maxStoredBytesPerResponse,
      maxStoredBytesInFlight,
      moveThresholdBytes,
      ...fence.args,
    ];
    const [bytes, aboveThreshold] = (await callRedis(() =>
      isOnlyInFlight
        ? appendScript.run(this.#redis, keys, args)
        : // `run` could change the order of frames while the script is being loaded.
          appendScript.runInOrder(this.#redis, keys, args),
    )) as [number, number];
    if (bytes < 0) throw new AttemptOvertaken();
    if (request.isResumable === true && isLast(kind)) this.#expireMark(request);
    return bytes === 0 ? null : { bytes, isAboveMoveThreshold: aboveThreshold === 1 };
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
    await this.#replace(this.#redis, 'frames', request, Buffer.alloc(0), '', '', fenceOf(request));
  }

  /** @throws AppError `too_many_jobs` if the account already has too many bytes in Redis */
  async putResponse(request: StoredRequest, bytes: Buffer): Promise<void> {
    const fence = fenceOf(request);
    const isResponseStored = await this.#replace(
      this.#payloads,
      'answer',
      request,
      bytes,
      '',
      lifetimeSeconds,
      fence,
    );
    const message = request.jobAttempt === undefined ? tooMuchStoredMessage : tooMuchStoredForJobsMessage;
    if (!isResponseStored) throw new AppError('too_many_jobs', { message });
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
    return await this.#replace(this.#redis, part, request, marker, bytes, '');
  }

  async #replace(
    redis: RedisClient,
    part: StoredPart,
    request: StoredRequest,
    value: Buffer,
    expectedBytes: number | '',
    lifetime: number | '',
    fence: Fence = noFence,
  ): Promise<boolean> {
    const keys = [...this.#keys(part, request), ...fence.keys];
    const args = [value, expectedBytes, lifetime, maxStoredBytesInFlight, ...fence.args];
    const outcome = await callRedis(() => replaceScript.run(redis, keys, args));
    if (outcome === -1) throw new AttemptOvertaken();
    return outcome === 1;
  }

  /** The mark of a resumable stream need not outlive its frames. It expires by itself later if this fails. */
  #expireMark({ accountId, requestId }: StoredRequest): void {
    const mark = redisKeys.resumableStream(accountId, requestId);
    this.#redis.expire(mark, 2 * resumableSeconds).catch(() => undefined);
  }

  #keys(part: StoredPart, request: StoredRequest): string[] {
    const { accountId, jobAttempt } = request;
    const counter = jobAttempt === undefined ? redisKeys.storedBytes : redisKeys.jobStoredBytes;
    return [keyOf(part, request), counter(accountId)];
  }
}

const megabytes = (bytes: number): number => bytes / 1_000_000;

/** The message for a caller whose response is not stored. The caller pays for the usage. */
export const tooMuchStoredMessage =
  `An answer under an Idempotency-Key, or with X-On-Disconnect, is kept up to ${megabytes(maxStoredBytesPerResponse)} MB, and those of an account ` +
  `that are under way up to ${megabytes(maxStoredBytesInFlight)} MB together. Send fewer of them at once, or send this ` +
  'request without the header.';

/** The message for a job whose response cannot be stored. The caller is not charged. */
const tooMuchStoredForJobsMessage =
  `The response could not be kept, and nothing was charged: the object store is away, and those of the account's other jobs ` +
  `take ${megabytes(maxStoredBytesInFlight)} MB already. Make fewer jobs until it is back, and this one again then.`;
