import type { Logger } from '../runtime/logger.ts';
import { runInBackground } from '../runtime/run-in-background.ts';
import { redisChannels } from '../redis/redis-keys.ts';
import { publishParts } from '../redis/publish-parts.ts';
import { countListeners, type RedisClient } from '../redis/redis-client.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import type { AdmittedRequest } from '../billing/admitted-request.ts';
import type { HeldRequest } from '../billing/reservation-store.ts';
import { encodeStored, type StoredResponse } from './response-store.ts';
import type { ErrorPayload } from './error-payload.ts';
import { ChannelWindow } from './channel-window.ts';
import { encodeHeader, encodeMark, encodeOffer, packRequestId, type FrameKind } from './frame.ts';
import type { KeptFramesStore, KeptSize } from './kept-frames-store.ts';

/** Redis disconnects a subscriber with 32 MB pending. Messages stay far below that. */
const maxMessageBytes = 1_000_000;
/** Text of this length is at most `maxInlineBytes` in UTF-8. */
const maxDeltaCharacters = maxInlineBytes / 3;

/** The reply channel of durable jobs, which have no listener. */
export const noChannel = '';

/** A frame to be sent. Text may be appended to a delta until its tick ends. */
interface PendingFrame {
  /** The request whose response is kept after its connection closes; null if it is not kept. */
  readonly keptAs: HeldRequest | null;
  readonly packedId: Uint8Array;
  readonly attempt: number;
  readonly sequence: number;
  readonly kind: FrameKind;
  tokens: number;
  payload: Buffer | string;
  sealed: boolean;
}

export interface ReplyPublisherOptions {
  readonly workerId: string;
  readonly redis: RedisClient;
  /** Carries the pieces of large results, so that other messages do not wait behind them. */
  readonly payloads: RedisClient;
  readonly keptFrames: Pick<KeptFramesStore, 'append'>;
  readonly log: Logger;
  /** Called when nobody listens to this channel. */
  readonly onDeaf: (channel: string) => void;
  /** All frames of a response have been kept. */
  readonly onKept?: (request: HeldRequest, size: KeptSize) => void;
  /** A frame was not kept because a bound is reached. Later frames have no reader. */
  readonly onKeptTooMuch?: (request: HeldRequest) => void;
}

/**
 * The worker's side of reply channels. Frames of one tick to one api process travel in one message. A channel without
 * listeners means that the api process has died, and its callers' connections with it.
 */
export class ReplyPublisher {
  readonly #options: ReplyPublisherOptions;
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #pending = new Map<string, PendingFrame[]>();
  readonly #windows = new Map<string, ChannelWindow>();
  readonly #leaving = new Set<Promise<void>>();

  constructor(options: ReplyPublisherOptions) {
    this.#options = options;
    this.#redis = options.redis;
    this.#log = options.log;
  }

  send(channel: string, frame: PendingFrame): void {
    this.grow(channel, frame.payload.length);
    const pending = this.#pending.get(channel);
    if (pending !== undefined) {
      pending.push(frame);
      return;
    }
    this.#pending.set(channel, [frame]);
    if (this.#pending.size === 1) setImmediate(() => this.flush());
  }

  /** Counts bytes added to what is sent at the end of this turn. */
  grow(channel: string, length: number): void {
    if (channel === noChannel) return;
    this.#windowOf(channel).queue(length);
  }

  /** Null while the channel's process keeps up; otherwise a promise that resolves when more may be sent to it. */
  whenRoom(channel: string): Promise<void> | null {
    if (channel === noChannel) return null;
    return this.#windows.get(channel)?.whenRoom() ?? null;
  }

  /** The channel's process has received everything up to this mark. */
  acknowledge(channel: string, mark: number): void {
    this.#windows.get(channel)?.acknowledge(mark);
  }

  /**
   * Sends one large frame at once, as a separate message. @throws what the Redis client throws; it may not have been
   * sent
   */
  async sendPiece(channel: string, frame: readonly Buffer[]): Promise<void> {
    await this.#hear(channel, await publishParts(this.#options.payloads, channel, frame));
  }

  /** Checks whether idle channels still have listeners. An empty message has no frames. */
  probe(channels: Iterable<string>): void {
    for (const channel of channels) this.#publish(channel, Buffer.alloc(0));
  }

  /** Resolves when all frames so far have been sent. Only then may a job be reported as done. */
  async sent(): Promise<void> {
    this.flush();
    await Promise.all(this.#leaving);
  }

  /**
   * Sends what is queued for the end of this turn now. Redis replies to it, and so reports whether anyone listens,
   * before it replies to any later command.
   */
  flush(): void {
    const batches = [...this.#pending];
    this.#pending.clear();
    for (const [channel, frames] of batches) {
      let pieces: Buffer[] = [];
      let size = 0;
      for (const frame of frames) {
        frame.sealed = true;
        const payload = typeof frame.payload === 'string' ? Buffer.from(frame.payload) : frame.payload;
        const header = encodeHeader(frame.packedId, frame, payload.length);
        const length = header.length + payload.length;
        if (frame.keptAs !== null) this.#keep(frame.keptAs, frame.kind, Buffer.concat([header, payload]));
        if (size + length > maxMessageBytes && size > 0) {
          this.#publishFrames(channel, pieces, size);
          pieces = [];
          size = 0;
        }
        pieces.push(header, payload);
        size += length;
      }
      this.#publishFrames(channel, pieces, size);
    }
  }

  #publishFrames(channel: string, pieces: Buffer[], size: number): void {
    // Durable jobs have no listener. What they report is stored.
    if (channel === noChannel) return;
    const mark = this.#windowOf(channel).send(size);
    if (mark !== null) pieces.push(encodeMark(this.#options.workerId, mark));
    this.#publish(channel, Buffer.concat(pieces));
  }

  #windowOf(channel: string): ChannelWindow {
    let window = this.#windows.get(channel);
    if (window === undefined) {
      window = new ChannelWindow();
      this.#windows.set(channel, window);
    }
    return window;
  }

  /** Called before publishing, so that a reader woken by the message finds the frame. */
  #keep(request: HeldRequest, kind: FrameKind, frame: Buffer): void {
    const { keptFrames, onKept, onKeptTooMuch } = this.#options;
    const kept = keptFrames
      .append(request, kind, frame)
      .then((size) => {
        if (size === null) onKeptTooMuch?.(request);
        else if (kind === 'result') onKept?.(request, size);
      })
      .catch((error: unknown) => {
        this.#log.warn({ requestId: request.requestId, err: error }, 'a frame could not be kept');
      });
    this.#follow(kept);
  }

  #publish(channel: string, message: Buffer): void {
    // The waiting process sees a lost message as a gap in the sequence, or as silence, and ends the request.
    const published = this.#redis
      .spublish(channel, message)
      .then((listeners) => this.#hear(channel, listeners as number))
      .catch((error: unknown) => {
        this.#log.warn({ channel, err: error }, 'frames could not be sent');
      });
    this.#follow(published);
  }

  async #hear(channel: string, listeners: number): Promise<void> {
    if (listeners > 0) return;
    if (this.#redis.isCluster && (await countListeners(this.#redis, channel)) > 0) return;
    this.#windows.delete(channel);
    this.#options.onDeaf(channel);
  }

  #follow(leaving: Promise<void>): void {
    this.#leaving.add(leaving);
    const left = leaving.finally(() => this.#leaving.delete(leaving));
    runInBackground(left, 'sending frames', this.#log);
  }
}

/** Writes the frames of one attempt of a request, numbered in the order they are sent. */
export class ReplyWriter {
  readonly #publisher: ReplyPublisher;
  readonly #channel: string;
  readonly #packedId: Uint8Array;
  readonly #attempt: number;
  readonly #keptAs: HeldRequest | null;
  #sequence = 0;
  #lastDelta: PendingFrame | null = null;

  constructor(
    publisher: ReplyPublisher,
    channel: string,
    { requestId, accountId, claimHash }: Pick<AdmittedRequest, 'requestId' | 'accountId' | 'claimHash'>,
    attempt: number,
  ) {
    this.#publisher = publisher;
    this.#channel = channel;
    this.#packedId = packRequestId(requestId);
    // A durable job reports through its record, and its response is kept separately.
    this.#keptAs = claimHash === null ? null : { requestId, accountId };
    this.#attempt = attempt;
  }

  accepted(workerId: string): void {
    this.#send('accepted', workerId);
  }

  /** Null while the waiting process keeps up; otherwise a promise that resolves when more may be sent to it. */
  whenRoom(): Promise<void> | null {
    return this.#publisher.whenRoom(this.#channel);
  }

  /** Deltas of one tick share a frame, so what a vendor sent at once reaches the caller at once. */
  delta(text: string, tokens: number): void {
    if (text.length > maxDeltaCharacters) {
      const bytes = Buffer.from(text);
      for (let at = 0; at < bytes.length; at += maxInlineBytes) {
        this.#send('delta', bytes.subarray(at, at + maxInlineBytes), tokens);
      }
      this.#lastDelta = null;
      return;
    }
    const last = this.#lastDelta;
    if (last !== null && !last.sealed && last.payload.length + text.length <= maxDeltaCharacters) {
      last.payload += text;
      last.tokens = tokens;
      this.#publisher.grow(this.#channel, text.length);
      return;
    }
    this.#lastDelta = this.#send('delta', text, tokens);
  }

  result(bytes: Buffer): void {
    this.#send('result', bytes);
  }

  stored(stored: StoredResponse): void {
    this.#send('stored', encodeStored(stored));
  }

  /** A result of this many bytes can be requested. */
  offered(length: number): void {
    this.#send('offered', encodeOffer(length));
  }

  /**
   * Prepares a piece that may be sent several times. A receiver that already has it ignores it.
   * @returns a function that sends it, and throws what the Redis client throws if it may not have been sent
   */
  piece(parts: readonly Buffer[]): () => Promise<void> {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const numbers = { attempt: this.#attempt, sequence: this.#sequence++, kind: 'piece', tokens: 0 } as const;
    const frame = [encodeHeader(this.#packedId, numbers, length), ...parts];
    return () => this.#publisher.sendPiece(this.#channel, frame);
  }

  error(error: ErrorPayload): void {
    this.#send('error', JSON.stringify(error));
  }

  #send(kind: FrameKind, payload: Buffer | string, tokens = 0): PendingFrame {
    const frame: PendingFrame = {
      keptAs: this.#keptAs,
      packedId: this.#packedId,
      attempt: this.#attempt,
      sequence: this.#sequence++,
      kind,
      tokens,
      payload,
      sealed: false,
    };
    this.#publisher.send(this.#channel, frame);
    return frame;
  }
}

/** Why a request is no longer needed if its caller did not leave. */
export interface CancelCause {
  /** The response cannot reach the caller through our fault, so the caller is not charged as if it had left. */
  readonly isOurFault?: true;
  /** The caller did not read the response. */
  readonly isUnread?: true;
}

/** What an api process asks of the worker that runs a request. */
export type RunControl = { readonly requestId: string } & (
  | { readonly action: 'pause' | 'resume' }
  /** The request is no longer needed: the caller left, unless the cause says otherwise. */
  | ({ readonly action: 'cancel' } & CancelCause)
  /** The bytes up to this one, of the result that this attempt offered, may be sent. */
  | { readonly action: 'send'; readonly attempt: number; readonly upToByte: number }
);

/** A message from an api process to a worker: about one request, or about everything received on its channel. */
export type ControlMessage =
  | RunControl
  | { readonly action: 'received'; readonly channel: string; readonly mark: number }
  /** The account has cancelled a durable job that this worker runs. */
  | { readonly action: 'cancel-job'; readonly jobId: string };

/** @returns whether the worker listens. After a lost connection it will again in a moment; a dead worker never will */
export async function sendControl(
  redis: RedisClient,
  workerId: string,
  message: ControlMessage,
): Promise<boolean> {
  const listeners = await redis.spublish(redisChannels.control(workerId), JSON.stringify(message));
  return (listeners as number) > 0;
}
