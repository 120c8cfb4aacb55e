import type { Logger } from '../runtime/logger.ts';
import { redisChannels } from '../redis/redis-keys.ts';
import { publishParts } from '../redis/publish-parts.ts';
import type { RedisClient } from '../redis/redis-client.ts';
import { maxInlineBytes } from '../queue/payload-limits.ts';
import type { AdmittedRequest } from '../queue/job-kinds.ts';
import type { ErrorPayload } from './error-payload.ts';
import { encodeHeader, encodeOffer, packRequestId, type FrameKind } from './frame.ts';
import { keepFrameBytes } from './kept-frames.ts';

/** Redis cuts a subscriber with 32 MB pending; a message stays far below it. */
const maxMessageBytes = 1_000_000;
/** Of one answer. Deltas past it are not kept, and whoever reads it there is told that it is not whole. */
const maxKeptBytes = 64_000_000;
/** Text of this length is at most `maxInlineBytes` in UTF-8. */
const maxDeltaCharacters = maxInlineBytes / 3;

/** A frame on its way: text may be added to a delta until its tick ends. */
interface PendingFrame {
  /** Whose answer is kept beyond its socket; null where it is not. */
  readonly keptAs: string | null;
  readonly packedId: Uint8Array;
  readonly attempt: number;
  readonly sequence: number;
  readonly kind: FrameKind;
  tokens: number;
  payload: Buffer | string;
  sealed: boolean;
}

/**
 * A worker's side: frames of one tick to one api process travel in one message. A channel that nobody listens to is
 * an api process that died, and its callers' connections with it.
 */
export class ReplyPublisher {
  readonly #redis: RedisClient;
  readonly #payloads: RedisClient;
  readonly #log: Logger;
  readonly #onDeaf: (channel: string) => void;
  readonly #pending = new Map<string, PendingFrame[]>();
  readonly #leaving = new Set<Promise<void>>();

  /** @param payloads carries pieces of large results: what others are told does not wait behind them */
  constructor(redis: RedisClient, payloads: RedisClient, log: Logger, onDeaf: (channel: string) => void) {
    this.#redis = redis;
    this.#payloads = payloads;
    this.#log = log;
    this.#onDeaf = onDeaf;
  }

  send(channel: string, frame: PendingFrame): void {
    const pending = this.#pending.get(channel);
    if (pending !== undefined) {
      pending.push(frame);
      return;
    }
    this.#pending.set(channel, [frame]);
    if (this.#pending.size === 1) setImmediate(() => this.#flush());
  }

  /** One large frame in a message of its own, at once. @throws what Redis's client throws: it may not have left */
  async sendPiece(channel: string, frame: readonly Buffer[]): Promise<void> {
    this.#hear(channel, await publishParts(this.#payloads, channel, frame));
  }

  /** Finds out about channels on which nothing is to be said for now. An empty message has no frames. */
  probe(channels: Iterable<string>): void {
    if (this.#redis.isCluster) return;
    for (const channel of channels) this.#publish(channel, Buffer.alloc(0));
  }

  /** Resolves when all frames so far have left: from then on a job may be said to be done. */
  async sent(): Promise<void> {
    if (this.#pending.size > 0) this.#flush();
    await Promise.all(this.#leaving);
  }

  #flush(): void {
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
          this.#publish(channel, Buffer.concat(pieces, size));
          pieces = [];
          size = 0;
        }
        pieces.push(header, payload);
        size += length;
      }
      this.#publish(channel, Buffer.concat(pieces, size));
    }
  }

  /** Before it is published: whoever is woken by the message finds the frame. */
  #keep(requestId: string, kind: FrameKind, frame: Buffer): void {
    const kept = keepFrameBytes(this.#redis, requestId, kind, frame).catch((error: unknown) => {
      this.#log.warn({ requestId, err: error }, 'a frame could not be kept');
    });
    this.#follow(kept);
  }

  #publish(channel: string, message: Buffer): void {
    // A lost message shows as a gap in the sequence, or as silence, at the process that waits; it ends the request.
    const published = this.#redis
      .publish(channel, message)
      .then((listeners) => this.#hear(channel, listeners))
      .catch((error: unknown) => {
        this.#log.warn({ channel, err: error }, 'frames could not be sent');
      });
    this.#follow(published);
  }

  #hear(channel: string, listeners: number): void {
    // A node of a Cluster counts only its own subscribers.
    if (listeners === 0 && !this.#redis.isCluster) this.#onDeaf(channel);
  }

  #follow(leaving: Promise<void>): void {
    this.#leaving.add(leaving);
    void leaving.then(() => this.#leaving.delete(leaving));
  }
}

/** The frames of one request's attempt, numbered in the order they are sent. */
export class ReplyWriter {
  readonly #publisher: ReplyPublisher;
  readonly #channel: string;
  readonly #packedId: Uint8Array;
  readonly #attempt: number;
  readonly #keptAs: string | null;
  #sequence = 0;
  #keptBytes = 0;
  #lastDelta: PendingFrame | null = null;

  constructor(
    publisher: ReplyPublisher,
    channel: string,
    { requestId, claimHash }: Pick<AdmittedRequest, 'requestId' | 'claimHash'>,
    attempt: number,
  ) {
    this.#publisher = publisher;
    this.#channel = channel;
    this.#packedId = packRequestId(requestId);
    this.#keptAs = claimHash === null ? null : requestId;
    this.#attempt = attempt;
  }

  accepted(workerId: string): void {
    this.#send('accepted', workerId);
  }

  /** Deltas of one tick are one frame: what a vendor sent at once reaches the caller at once. */
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
      this.#keptBytes += text.length;
      last.tokens = tokens;
      return;
    }
    this.#lastDelta = this.#send('delta', text, tokens);
  }

  result(bytes: Buffer): void {
    this.#send('result', bytes);
  }

  stored(place: string): void {
    this.#send('stored', place);
  }

  /** A result of so many bytes can be asked for. */
  offered(length: number): void {
    this.#send('offered', encodeOffer(length));
  }

  /**
   * A piece, to be sent as often as it takes: whoever has had it ignores it.
   * @returns sends it; throws what Redis's client throws where it may not have left
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
    this.#keptBytes += payload.length;
    const isKept = kind !== 'delta' || this.#keptBytes <= maxKeptBytes;
    const frame: PendingFrame = {
      keptAs: isKept ? this.#keptAs : null,
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

/** What an api process asks of the worker that runs a request. */
export type ControlMessage = { readonly requestId: string } & (
  | { readonly action: 'pause' | 'resume' | 'cancel' }
  /** Of the result that this attempt offered, what is up to this byte may be sent. */
  | { readonly action: 'send'; readonly attempt: number; readonly upToByte: number }
);

export async function sendControl(
  redis: RedisClient,
  workerId: string,
  message: ControlMessage,
): Promise<void> {
  await redis.publish(redisChannels.control(workerId), JSON.stringify(message));
}
