// decision 0098
import { createHmac, randomBytes } from 'node:crypto';
import { hashSecret } from '../accounts/credentials.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { AppError } from '../contract/errors.ts';
import { createRecentEntries } from '../platform/runtime/recent-entries.ts';

/** A browser's session of the admin API. It ends with its token. */
export interface AdminSession {
  /** The hash of the token that started it. */
  readonly secretHash: string;
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

/** What is stored of a session, under the hash of its cookie. */
interface StoredSession {
  readonly secretHash: string;
  readonly expiresAtMs: number;
}

const lifeSeconds = 8 * 60 * 60;
/** While Redis does not respond, sessions that were used go on for this long, so that operators see what is wrong. */
const graceMs = 60_000;
const maxKnown = 1_000;
const cookieForm = /^[A-Za-z0-9_-]{43}$/;

/** Derived from the cookie, so that a page which was reloaded can be told it again. Pages cannot read the cookie. */
const deriveCsrfToken = (cookie: string): string =>
  createHmac('sha256', cookie).update('admin csrf token').digest('base64url');

/** Sessions of operators' browsers, in Redis. */
export class AdminSessionStore {
  readonly #redis: RedisClient;
  /** Sessions that were found lately, by the hash of their cookie. */
  readonly #known = createRecentEntries<string, StoredSession>(maxKnown, graceMs);

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @param secretHash of the token. @returns the cookie, which is stored nowhere */
  async start(secretHash: string): Promise<{ readonly cookie: string; readonly session: AdminSession }> {
    const cookie = randomBytes(32).toString('base64url');
    const expiresAtMs = Date.now() + lifeSeconds * 1_000;
    const stored: StoredSession = { secretHash, expiresAtMs };
    const cookieHash = hashSecret(cookie);
    const ofToken = redisKeys.adminSessionsOf(secretHash);
    await callRedis(() =>
      this.#redis
        .multi()
        .set(redisKeys.adminSession(cookieHash), JSON.stringify(stored), 'EX', lifeSeconds)
        .zremrangebyscore(ofToken, '-inf', Date.now())
        .zadd(ofToken, expiresAtMs, cookieHash)
        .expire(ofToken, lifeSeconds)
        .exec(),
    );
    return { cookie, session: toSession(cookie, stored) };
  }

  /** @returns null if the session has ended or never was. @throws AppError `service_unavailable` */
  async find(cookie: string): Promise<AdminSession | null> {
    if (!cookieForm.test(cookie)) return null;
    const stored = await this.#read(hashSecret(cookie));
    return stored === null || stored.expiresAtMs <= Date.now() ? null : toSession(cookie, stored);
  }

  async #read(cookieHash: string): Promise<StoredSession | null> {
    let text: string | null;
    try {
      text = await callRedis(() => this.#redis.get(redisKeys.adminSession(cookieHash)));
    } catch (error) {
      const known = this.#known.get(cookieHash);
      if (known === undefined || !(error instanceof AppError)) throw error;
      return known;
    }
    const stored = text === null ? null : (JSON.parse(text) as StoredSession);
    if (stored === null) this.#known.delete(cookieHash);
    else this.#known.set(cookieHash, stored);
    return stored;
  }

  async end(cookie: string): Promise<void> {
    if (!cookieForm.test(cookie)) return;
    const cookieHash = hashSecret(cookie);
    const stored = await this.#read(cookieHash);
    this.#known.delete(cookieHash);
    if (stored === null) return;
    await callRedis(() =>
      Promise.all([
        this.#redis.del(redisKeys.adminSession(cookieHash)),
        this.#redis.zrem(redisKeys.adminSessionsOf(stored.secretHash), cookieHash),
      ]),
    );
  }

  /** Counts the open sessions of a token. Those that an earlier release started are missing. */
  async count(secretHash: string): Promise<number> {
    return await callRedis(() =>
      this.#redis.zcount(redisKeys.adminSessionsOf(secretHash), Date.now(), '+inf'),
    );
  }
}

const toSession = (cookie: string, { secretHash, expiresAtMs }: StoredSession): AdminSession => ({
  secretHash,
  csrfToken: deriveCsrfToken(cookie),
  expiresAt: new Date(expiresAtMs),
});
