import { claimLifetimeSeconds } from '../billing/claim.ts';
import {
  crowdedBytes,
  keptBytesFunctions,
  maxKeptBytesPerAnswer,
  maxKeptBytesUnderWay,
} from '../billing/kept-bytes.ts';
import type { HeldRequest } from '../billing/reservation-store.ts';
import { AppError } from '../contract/errors.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { decodeFirstFrame, encodeFrame, frameKinds, kindOffset, type FrameKind } from './frame.ts';

/** Longer than the claim that leads to it, so that no caller finds half of an answer. */
const lifetimeSeconds = claimLifetimeSeconds + 60 * 60;

/** Failures are not replayed: only readers that are attached now still need one. */
const failureLifetimeSeconds = 5 * 60;

/**
 * Of an attempt at a durable job: whether another has the job by now, or it has ended. What such an attempt brings late must
 * not take the place of what was charged.
 */
const fenceFunction = `
local function isOvertaken(record, attempt)
  if not record then return false end
  local r = redis.call('HMGET', record, 'st', 'n')
  return r[1] and (r[2] ~= attempt or (r[1] ~= 'q' and r[1] ~= 'a'))
end
`;

/**
 * Appends a frame, and counts it. A delta is refused where a bound is reached; the frames around it are small. Whether the
 * account is crowded is told with those.
 */
const appendScript = new RedisScript(`${keptBytesFunctions}${fenceFunction}
local frames, counter = KEYS[1], KEYS[2]
if isOvertaken(KEYS[3], ARGV[8]) then return {-1, 0} end
local frame, isDelta, isBounded, lifetime = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local before = redis.call('STRLEN', frames)
if isBounded and (before + #frame > tonumber(ARGV[5]) or keptBytesExceed(counter, tonumber(ARGV[6]) - #frame)) then
  return {0, 0}
end
local length = redis.call('APPEND', frames, frame)
local expiresAt = before > 0 and redis.call('EXPIRETIME', frames) or -1
if expiresAt < 0 or not isDelta then
  local later = endOfBucket(redis.call('TIME')[1] + lifetime)
  if expiresAt > 0 then changeKeptBytes(counter, expiresAt, -before) end
  redis.call('EXPIREAT', frames, later)
  changeKeptBytes(counter, later, length)
else
  changeKeptBytes(counter, expiresAt, #frame)
end
return {length, not isDelta and keptBytesExceed(counter, tonumber(ARGV[7])) and 1 or 0}
`);

/**
 * Sets a value, for a lifetime or for what is left of the lifetime of the value before it; deletes where it is empty.
 * Where the value before it is not as long as expected, another process has changed it, and it stays.
 */
const replaceScript = new RedisScript(`${keptBytesFunctions}${fenceFunction}
local key, counter = KEYS[1], KEYS[2]
if isOvertaken(KEYS[3], ARGV[5]) then return -1 end
local value, expected, lifetime = ARGV[1], ARGV[2], ARGV[3]
local before = redis.call('STRLEN', key)
if expected ~= '' and before ~= tonumber(expected) then return 0 end
if before == 0 and value == '' then return 1 end
local expiresAt = redis.call('EXPIRETIME', key)
if lifetime ~= '' then
  if keptBytesExceed(counter, tonumber(ARGV[4]) - #value) then return 0 end
  if before > 0 then changeKeptBytes(counter, expiresAt, -before) end
  expiresAt = endOfBucket(redis.call('TIME')[1] + tonumber(lifetime))
else
  changeKeptBytes(counter, expiresAt, -before)
end
if value == '' then
  redis.call('UNLINK', key)
else
  redis.call('SET', key, value, 'EXAT', expiresAt)
  changeKeptBytes(counter, expiresAt, #value)
end
return 1
`);

/** Another attempt has the job by now, or it has ended: nothing of this one is kept, nor charged. */
export class AttemptOvertaken extends Error {
  override readonly name = 'AttemptOvertaken';
}

interface Fence {
  readonly keys: readonly string[];
  readonly args: readonly number[];
}

const noFence: Fence = { keys: [], args: [] };

function fenceOf({ accountId, requestId, jobAttempt }: KeptRequest): Fence {
  return jobAttempt === undefined
    ? noFence
    : { keys: [redisKeys.job(accountId, requestId)], args: [jobAttempt] };
}

/** The two values that Redis holds for a request: its frames, and a whole answer while the object store is away. */
export type KeptPart = 'frames' | 'answer';

export interface KeptSize {
  /** Of the frames of this request. */
  readonly bytes: number;
  /** Redis keeps so much for the account that its smaller answers are worth moving, too. */
  readonly isCrowded: boolean;
}

/** A request whose answer is kept. */
export interface KeptRequest extends HeldRequest {
  /** Which attempt at a durable job keeps it; of no other request. What jobs keep is counted by itself. */
  readonly jobAttempt?: number | undefined;
}

const keyOf = (part: KeptPart, { accountId, requestId }: HeldRequest): string =>
  part === 'frames' ? redisKeys.keptFrames(accountId, requestId) : redisKeys.keptAnswer(accountId, requestId);

/**
 * Answers under Idempotency-Keys, and of durable jobs, as Redis keeps them: the frames of a request one after the other in
 * one string, so that a reader takes as many bytes as it wants from where it stopped.
 */
export class KeptFramesStore {
  readonly #redis: RedisClient;
  readonly #payloads: RedisClient;

  /** @param payloads carries what is read: nothing small waits behind it */
  constructor(redis: RedisClient, payloads: RedisClient) {
    this.#redis = redis;
    this.#payloads = payloads;
  }

  /**
   * Null where the frame is not kept, because a bound is reached.
   * @param isBounded whether it may be refused: deltas always, and what has another place to go
   * @param isAlone no other frame of the request is under way: the script's text need not be sent to keep them in order
   */
  async append(
    request: KeptRequest,
    kind: FrameKind,
    frame: Buffer,
    { isBounded = kind === 'delta', isAlone = false } = {},
  ): Promise<KeptSize | null> {
    const fence = fenceOf(request);
    const keys = [...this.#keys('frames', request), ...fence.keys];
    const args = [
      frame,
      kind === 'delta' ? 1 : 0,
      isBounded ? 1 : 0,
      kind === 'error' ? failureLifetimeSeconds : lifetimeSeconds,
      maxKeptBytesPerAnswer,
      maxKeptBytesUnderWay,
      crowdedBytes,
      ...fence.args,
    ];
    const [bytes, crowded] = (await callRedis(() =>
      isAlone
        ? appendScript.run(this.#redis, keys, args)
        : // Frames must not overtake one another, as they could while the script is being loaded.
          appendScript.runInOrder(this.#redis, keys, args),
    )) as [number, number];
    if (bytes < 0) throw new AttemptOvertaken();
    return bytes === 0 ? null : { bytes, isCrowded: crowded === 1 };
  }

  /**
   * Bytes of a request's frames; none where there are no more yet. Where the frames have moved to the object store, how
   * many bytes are there: an offset means the same in either place.
   */
  async readFrames(
    request: HeldRequest,
    from: number,
    maxBytes: number,
  ): Promise<{ readonly bytes: Buffer } | { readonly movedBytes: number }> {
    const key = keyOf('frames', request);
    const [bytes, kind] = await callRedis(() =>
      // In this order: frames that move between the two reads are known to have moved.
      Promise.all([
        this.#payloads.getrangeBuffer(key, from, from + maxBytes - 1),
        this.#payloads.getrangeBuffer(key, kindOffset, kindOffset),
      ]),
    );
    if (kind[0] !== frameKinds.indexOf('moved')) return { bytes };
    const marker = await callRedis(() => this.#payloads.getBuffer(key));
    // Null where it expired just now; then nothing leads to it any more.
    const first = marker === null ? null : decodeFirstFrame(marker);
    return first === null ? { bytes: Buffer.alloc(0) } : { movedBytes: Number(first.frame.payload) };
  }

  /** Bytes of either part; fewer than were asked for at the end of it. */
  async readPart(part: KeptPart, request: HeldRequest, from: number, maxBytes: number): Promise<Buffer> {
    const key = keyOf(part, request);
    return await callRedis(() => this.#payloads.getrangeBuffer(key, from, from + maxBytes - 1));
  }

  /** Null where there is none. */
  async readAnswer(request: HeldRequest): Promise<Buffer | null> {
    return await callRedis(() => this.#payloads.getBuffer(keyOf('answer', request)));
  }

  /** Drops the frames of a request: another attempt keeps others. */
  async clear(request: KeptRequest): Promise<void> {
    await this.#replace(this.#redis, 'frames', request, Buffer.alloc(0), '', '', fenceOf(request));
  }

  /** @throws AppError `too_many_jobs` where the account has too much in Redis already */
  async putAnswer(request: KeptRequest, bytes: Buffer): Promise<void> {
    const fence = fenceOf(request);
    const isKept = await this.#replace(this.#payloads, 'answer', request, bytes, '', lifetimeSeconds, fence);
    const message = request.jobAttempt === undefined ? tooMuchKept : tooMuchOfJobs;
    if (!isKept) throw new AppError('too_many_jobs', { message });
  }

  /**
   * Leaves of what was copied to the object store no more than where it is.
   * @param bytes how long it was when it was copied
   * @returns false where it changed or expired meanwhile; it stays as it is then
   */
  async leaveMoved(part: KeptPart, request: KeptRequest, bytes: number): Promise<boolean> {
    const { requestId } = request;
    const header = { requestId, attempt: 0, sequence: 0, kind: 'moved', tokens: 0 } as const;
    const marker =
      part === 'frames' ? encodeFrame({ ...header, payload: Buffer.from(String(bytes)) }) : Buffer.alloc(0);
    return await this.#replace(this.#redis, part, request, marker, bytes, '');
  }

  async #replace(
    redis: RedisClient,
    part: KeptPart,
    request: KeptRequest,
    value: Buffer,
    expectedBytes: number | '',
    lifetime: number | '',
    fence: Fence = noFence,
  ): Promise<boolean> {
    const keys = [...this.#keys(part, request), ...fence.keys];
    const args = [value, expectedBytes, lifetime, maxKeptBytesUnderWay, ...fence.args];
    const outcome = await callRedis(() => replaceScript.run(redis, keys, args));
    if (outcome === -1) throw new AttemptOvertaken();
    return outcome === 1;
  }

  #keys(part: KeptPart, request: KeptRequest): string[] {
    const { accountId, jobAttempt } = request;
    const counter = jobAttempt === undefined ? redisKeys.keptBytes : redisKeys.jobKeptBytes;
    return [keyOf(part, request), counter(accountId)];
  }
}

const megabytes = (bytes: number): number => bytes / 1_000_000;

/** What a caller is told whose answer is not kept; what came of it is charged. */
export const tooMuchKept =
  `An answer under an Idempotency-Key is kept up to ${megabytes(maxKeptBytesPerAnswer)} MB, and those of an account ` +
  `that are under way up to ${megabytes(maxKeptBytesUnderWay)} MB together. Send fewer of them at once, or send this ` +
  'request without the header.';

/** What a job fails with whose response neither store takes; nothing is charged for it. */
const tooMuchOfJobs =
  `The response could not be kept, and nothing was charged: the object store is away, and those of the account's other jobs ` +
  `take ${megabytes(maxKeptBytesUnderWay)} MB already. Make fewer jobs until it is back, and this one again then.`;
