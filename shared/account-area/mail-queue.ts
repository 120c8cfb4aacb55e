import { randomUUID } from 'node:crypto';
import type { JobsOptions, Queue } from 'bullmq';
import { encryptSecret } from '../accounts/credentials.ts';
import { AppError } from '../contract/errors.ts';
import { openBullQueue } from '../work/queue/open-bull-queue.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { findMailExpiry, type Mail } from './mail.ts';

export const mailQueueName = 'mail';

/** A mail as stored in Redis. Without `MASTER_KEY`, codes and addresses cannot be read there. */
export interface SealedMail {
  /** The mail as JSON, encrypted. */
  readonly sealed: string;
  /** Milliseconds since 1970. The mail is not sent after that. */
  readonly expiresAt: number;
}

/** About 25 MB of Redis: a mail server that is down must not fill it. */
const maxWaiting = 20_000;

/** Attempts stop when the mail expires, but BullMQ requires a number. */
const attempts = 100_000;

/** Undeliverable notices are kept for operators to inspect, up to a number and an age in seconds. */
const failedNotices = { count: 1_000, age: 7 * 24 * 60 * 60 };

/**
 * While a sent notice is kept, adding it again has no effect. A process that died may not have recorded that it was
 * sent.
 */
const sentNotices = { count: 1_000, age: 60 * 60 };

const codeOptions: JobsOptions = { removeOnFail: true };
/**
 * No priority is set: if codes went first, an attacker could delay a notice by requesting more and more codes.
 */
const noticeOptions: JobsOptions = { removeOnComplete: sentNotices, removeOnFail: failedNotices };

export interface MailQueueOptions {
  readonly masterKey: string;
  /** For tests. */
  readonly maxWaiting?: number;
}

/** Queues mails to be sent. Adding one takes one round trip to Redis and none to the mail server. */
export class MailQueue {
  readonly #queue: Queue<SealedMail>;
  readonly #masterKey: string;
  readonly #maxWaiting: number;
  /** How many mails wait: the last count plus the mails added since. */
  #waiting = 0;

  constructor(redis: RedisClient, options: MailQueueOptions) {
    this.#masterKey = options.masterKey;
    this.#maxWaiting = options.maxWaiting ?? maxWaiting;
    this.#queue = openBullQueue(mailQueueName, redis, {
      attempts,
      backoff: { type: 'custom' },
      removeOnComplete: true,
      // The failure reason is enough. A stack trace would be stored for every attempt.
      stackTraceLimit: 0,
    });
  }

  /**
   * Queues a mail.
   * @param id letters, digits, `-` and `_`. If a mail with this id is waiting, or a notice with this id was sent within
   * the last hour, adding it again has no effect.
   * @throws AppError `service_unavailable` if Redis is unavailable or too many mails wait
   */
  async add(mail: Mail, { id = randomUUID() }: { readonly id?: string } = {}): Promise<void> {
    if (!/^(?!\d+$)[\w-]{1,100}$/.test(id)) throw new Error(`"${id}" is not a valid mail id.`);
    if (this.#waiting >= this.#maxWaiting) await this.#count();
    if (this.#waiting >= this.#maxWaiting)
      throw new AppError('service_unavailable', { message: `${this.#waiting} mails wait already` });
    const sealed = encryptSecret(JSON.stringify(mail), this.#masterKey);
    const data: SealedMail = { sealed, expiresAt: findMailExpiry(mail) };
    const options = mail.kind === 'notice' ? noticeOptions : codeOptions;
    // Sent in one pipeline, so the count misses this mail but needs no extra round trip.
    await Promise.all([
      this.#count().catch(() => {
        // A failed count must not fail the call, because the mail may be queued nevertheless.
      }),
      callRedis(
        async () => await this.#queue.add(mail.kind as never, data as never, { ...options, jobId: id }),
      ),
    ]);
    this.#waiting += 1;
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #count(): Promise<void> {
    const counts = await callRedis(async () => await this.#queue.getJobCounts('wait', 'delayed'));
    this.#waiting = Object.values(counts).reduce((sum, count) => sum + count, 0);
  }
}
