import type { ErrorCode } from '../contract/errors.ts';
import type { Logger } from '../runtime/logger.ts';
import { redisChannels } from '../redis/redis-keys.ts';
import type { RedisClient } from '../redis/redis-client.ts';
import { encodeFrame, type Frame, type FrameKind } from './frame.ts';

/** Redis cuts a subscriber with 32 MB pending; a message stays far below it. */
const maxMessageBytes = 1_000_000;

/** What an `error` frame says: the code, and the text a caller may read. */
export interface ErrorPayload {
  readonly code: ErrorCode;
  readonly message: string;
}

/**
 * A worker's side: frames of one tick to one api process travel in one message. A channel that nobody listens to is
 * an api process that died, and its callers' connections with it.
 */
export class ReplyPublisher {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #onDeaf: (channel: string) => void;
  readonly #pending = new Map<string, Buffer[]>();

  constructor(redis: RedisClient, log: Logger, onDeaf: (channel: string) => void) {
    this.#redis = redis;
    this.#log = log;
    this.#onDeaf = onDeaf;
  }

  send(channel: string, frame: Frame): void {
    const pending = this.#pending.get(channel);
    if (pending !== undefined) {
      pending.push(encodeFrame(frame));
      return;
    }
    this.#pending.set(channel, [encodeFrame(frame)]);
    if (this.#pending.size === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    const batches = [...this.#pending];
    this.#pending.clear();
    for (const [channel, frames] of batches) {
      let batch: Buffer[] = [];
      let size = 0;
      for (const frame of frames) {
        if (size + frame.length > maxMessageBytes && batch.length > 0) {
          this.#publish(channel, Buffer.concat(batch, size));
          batch = [];
          size = 0;
        }
        batch.push(frame);
        size += frame.length;
      }
      this.#publish(channel, Buffer.concat(batch, size));
    }
  }

  #publish(channel: string, message: Buffer): void {
    // A lost message shows as a gap in the sequence, or as silence, at the process that waits; it ends the request.
    this.#redis
      .publish(channel, message)
      .then((listeners) => {
        // A node of a Cluster counts only its own subscribers.
        if (listeners === 0 && !this.#redis.isCluster) this.#onDeaf(channel);
      })
      .catch((error: unknown) => {
        this.#log.warn({ channel, err: error }, 'frames could not be sent');
      });
  }
}

/** The frames of one request's attempt, numbered in the order they are sent. */
export class ReplyWriter {
  readonly #publisher: ReplyPublisher;
  readonly #channel: string;
  readonly #requestId: string;
  readonly #attempt: number;
  #sequence = 0;

  constructor(publisher: ReplyPublisher, channel: string, requestId: string, attempt: number) {
    this.#publisher = publisher;
    this.#channel = channel;
    this.#requestId = requestId;
    this.#attempt = attempt;
  }

  accepted(workerId: string): void {
    this.#send('accepted', Buffer.from(workerId));
  }

  delta(bytes: Buffer, tokens: number): void {
    this.#send('delta', bytes, tokens);
  }

  result(bytes: Buffer): void {
    this.#send('result', bytes);
  }

  stored(payloadId: string): void {
    this.#send('stored', Buffer.from(payloadId));
  }

  error(error: ErrorPayload): void {
    this.#send('error', Buffer.from(JSON.stringify(error)));
  }

  #send(kind: FrameKind, payload: Buffer, tokens = 0): void {
    this.#publisher.send(this.#channel, {
      requestId: this.#requestId,
      attempt: this.#attempt,
      sequence: this.#sequence++,
      kind,
      tokens,
      payload,
    });
  }
}

/** What an api process asks of the worker that runs a request. */
export interface ControlMessage {
  readonly action: 'pause' | 'resume' | 'cancel';
  readonly requestId: string;
}

export async function sendControl(
  redis: RedisClient,
  workerId: string,
  message: ControlMessage,
): Promise<void> {
  await redis.publish(redisChannels.control(workerId), JSON.stringify(message));
}
