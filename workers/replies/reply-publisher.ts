import { noChannel } from '../../shared/queue/job-kinds.ts';
import type { HeartbeatRequest } from '../../shared/billing/reservation-store.ts';
import { publishParts } from '../../shared/redis/publish-parts.ts';
import { countListeners, type RedisClient } from '../../shared/redis/redis-client.ts';
import { encodeHeader, encodeMark, type FrameKind } from '../../shared/reply/frame.ts';
import type { StoredFramesStore, StoredSize } from '../../shared/reply/stored-frames-store.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import { ChannelWindow } from './channel-window.ts';

/** Redis disconnects a subscriber with 32 MB pending. Messages stay far below that. */
const maxMessageBytes = 1_000_000;

/** A frame to be sent. Text may be appended to a delta until its tick ends. */
export interface PendingFrame {
  /** The request whose response is kept after its connection closes; null if it is not kept. */
  readonly keptAs: HeartbeatRequest | null;
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
  readonly storedFrames: Pick<StoredFramesStore, 'append'>;
  readonly log: Logger;
  /** Called when nobody listens to this channel. */
  readonly onDeaf: (channel: string) => void;
  /** All frames of a response have been kept. */
  readonly onStored?: (request: HeartbeatRequest, size: StoredSize) => void;
  /** A frame was not kept because a bound is reached. Later frames have no reader. */
  readonly onStoredTooMuch?: (request: HeartbeatRequest) => void;
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
  #keep(request: HeartbeatRequest, kind: FrameKind, frame: Buffer): void {
    const { storedFrames, onStored, onStoredTooMuch } = this.#options;
    const kept = storedFrames
      .append(request, kind, frame)
      .then((size) => {
        if (size === null) onStoredTooMuch?.(request);
        else if (kind === 'result') onStored?.(request, size);
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
