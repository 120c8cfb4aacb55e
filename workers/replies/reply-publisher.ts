import { setTimeout as delay } from 'node:timers/promises';
import { noChannel } from '../../shared/work/queue/job-kinds.ts';
import { publishParts } from './publish-parts.ts';
import { countSubscribers, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { encodeHeader, encodeMark, type FrameKind } from '../../shared/work/replies/frame.ts';
import type {
  StoredFramesStore,
  StoredRequest,
  StoredSize,
} from '../../shared/work/replies/stored-frames-store.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { runInBackground } from '../../shared/platform/runtime/run-in-background.ts';
import { ChannelWindow, type Burst } from './channel-window.ts';

/** Redis disconnects a subscriber with 32 MB pending. Messages stay far below that. */
const maxMessageBytes = 1_000_000;

/** How long ago a channel may have had listeners for a vendor to be called without asking Redis again. */
const maxConfirmedMs = 1_000;
const confirmRetryMs = 250;

/** A frame to be sent. Text may be appended to a delta until the end of the event loop turn. */
export interface PendingFrame {
  /** The request whose response is stored beyond its connection; null if it is not stored. */
  readonly storedAs: StoredRequest | null;
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
  /** The connection for pieces of large results, so that other messages do not wait behind them. */
  readonly payloads: RedisClient;
  readonly storedFrames: Pick<StoredFramesStore, 'append'>;
  readonly log: Logger;
  /** Called when a channel has no listeners. */
  readonly onNoListeners: (channel: string) => void;
  /** Called when all frames of a response have been stored. */
  readonly onStored?: (request: StoredRequest, size: StoredSize) => void;
  /** Called when a frame was not stored because a limit was reached. Nothing reads the frames after it. */
  readonly onStorageLimitReached?: (request: StoredRequest) => void;
}

/**
 * The worker's side of reply channels. Frames of one tick to one api process are sent in one message. A channel without
 * listeners means that the api process has died, and its callers' connections with it.
 */
export class ReplyPublisher {
  readonly #options: ReplyPublisherOptions;
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #pending = new Map<string, PendingFrame[]>();
  readonly #windows = new Map<string, ChannelWindow>();
  readonly #inFlight = new Set<Promise<void>>();

  constructor(options: ReplyPublisherOptions) {
    this.#options = options;
    this.#redis = options.redis;
    this.#log = options.log;
  }

  send(channel: string, frame: PendingFrame, burst: Burst): void {
    this.grow(channel, frame.payload.length, burst);
    const pending = this.#pending.get(channel);
    if (pending !== undefined) {
      pending.push(frame);
      return;
    }
    this.#pending.set(channel, [frame]);
    if (this.#pending.size === 1) setImmediate(() => this.flush());
  }

  /** Records that a frame to be sent at the end of this event loop turn grew by this many bytes. */
  grow(channel: string, length: number, burst: Burst): void {
    if (channel === noChannel) return;
    this.#windowOf(channel).queue(length, burst);
  }

  /**
   * Returns null while the channel's process keeps up with the response; otherwise a promise that resolves when more of
   * it may be sent.
   */
  whenWritable(channel: string, burst: Burst): Promise<void> | null {
    if (channel === noChannel) return null;
    return this.#windows.get(channel)?.whenWritable(burst) ?? null;
  }

  /** Records that the channel's process has received everything up to this mark. */
  acknowledge(channel: string, mark: number): void {
    this.#windows.get(channel)?.acknowledge(mark);
  }

  /**
   * Sends one large frame immediately, as a separate message.
   * @throws errors of the Redis client; the frame may not have been sent
   */
  async sendPiece(channel: string, frame: readonly Buffer[]): Promise<void> {
    await this.#checkListeners(channel, await publishParts(this.#options.payloads, channel, frame));
  }

  /** Checks whether idle channels still have listeners. An empty message has no frames. */
  probe(channels: Iterable<string>): void {
    for (const channel of channels) this.#publish(channel, Buffer.alloc(0));
  }

  /**
   * Waits until Redis has shown that the channel has listeners, or the signal is aborted. Returns null if Redis has shown
   * it within the last second. A channel without listeners has its requests cancelled.
   */
  whenConfirmed(channel: string, signal: AbortSignal): Promise<void> | null {
    return channel === noChannel || this.#isConfirmed(channel) ? null : this.#confirm(channel, signal);
  }

  #isConfirmed(channel: string): boolean {
    const confirmedAtMs = this.#windows.get(channel)?.confirmedAtMs ?? -Infinity;
    return performance.now() - confirmedAtMs < maxConfirmedMs;
  }

  /** Asks again during an outage of Redis. */
  async #confirm(channel: string, signal: AbortSignal): Promise<void> {
    await this.sent();
    while (!signal.aborted && !this.#isConfirmed(channel)) {
      await delay(confirmRetryMs);
      this.probe([channel]);
      await this.sent();
    }
  }

  /** Resolves when all frames so far have been sent. Only then may a job be reported as done. */
  async sent(): Promise<void> {
    this.flush();
    await Promise.all(this.#inFlight);
  }

  /**
   * Sends the queued frames now instead of at the end of this event loop turn. Redis replies with the number of
   * listeners before it replies to any later command.
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
        if (frame.storedAs !== null)
          this.#store(frame.storedAs, frame.kind, Buffer.concat([header, payload]));
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
    // Durable jobs have no listener; their results are stored.
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

  /** Called before publishing, so that a reader notified by the message finds the frame. */
  #store(request: StoredRequest, kind: FrameKind, frame: Buffer): void {
    const { storedFrames, onStored, onStorageLimitReached } = this.#options;
    const storing = storedFrames
      .append(request, kind, frame)
      .then((size) => {
        if (size === null) onStorageLimitReached?.(request);
        else if (kind === 'result') onStored?.(request, size);
      })
      .catch((error: unknown) => {
        this.#log.warn({ requestId: request.requestId, err: error }, 'storing a frame failed');
      });
    this.#track(storing);
  }

  #publish(channel: string, message: Buffer): void {
    // The waiting process detects a lost message as a gap in the sequence or as silence, and ends the request.
    const published = this.#redis
      .spublish(channel, message)
      .then((listeners) => this.#checkListeners(channel, listeners as number))
      .catch((error: unknown) => {
        this.#log.warn({ channel, err: error }, 'sending frames failed');
      });
    this.#track(published);
  }

  async #checkListeners(channel: string, listeners: number): Promise<void> {
    if (listeners > 0 || (this.#redis.isCluster && (await countSubscribers(this.#redis, channel)) > 0)) {
      const window = this.#windows.get(channel);
      if (window !== undefined) window.confirmedAtMs = performance.now();
      return;
    }
    this.#windows.get(channel)?.close();
    this.#windows.delete(channel);
    this.#options.onNoListeners(channel);
  }

  #track(sending: Promise<void>): void {
    this.#inFlight.add(sending);
    const done = sending.finally(() => this.#inFlight.delete(sending));
    runInBackground(done, 'sending frames', this.#log);
  }
}
