// decision 0098
import { createHmac, randomBytes } from 'node:crypto';
import { hashSecret } from '../../shared/accounts/credentials.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';

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
const cookieForm = /^[A-Za-z0-9_-]{43}$/;

/** Derived from the cookie, so that a page which was reloaded can be told it again. Pages cannot read the cookie. */
const deriveCsrfToken = (cookie: string): string =>
  createHmac('sha256', cookie).update('admin csrf token').digest('base64url');

/** Sessions of operators' browsers, in Redis. */
export class AdminSessionStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @param secretHash of the token. @returns the cookie, which is stored nowhere */
  async start(secretHash: string): Promise<{ readonly cookie: string; readonly session: AdminSession }> {
    const cookie = randomBytes(32).toString('base64url');
    const expiresAtMs = Date.now() + lifeSeconds * 1_000;
    const stored: StoredSession = { secretHash, expiresAtMs };
    const key = redisKeys.adminSession(hashSecret(cookie));
    await callRedis(() => this.#redis.set(key, JSON.stringify(stored), 'EX', lifeSeconds));
    return { cookie, session: toSession(cookie, stored) };
  }

  /** @returns null if the session has ended or never was */
  async find(cookie: string): Promise<AdminSession | null> {
    if (!cookieForm.test(cookie)) return null;
    const text = await callRedis(() => this.#redis.get(redisKeys.adminSession(hashSecret(cookie))));
    return text === null ? null : toSession(cookie, JSON.parse(text) as StoredSession);
  }

  async end(cookie: string): Promise<void> {
    if (!cookieForm.test(cookie)) return;
    await callRedis(() => this.#redis.del(redisKeys.adminSession(hashSecret(cookie))));
  }
}

const toSession = (cookie: string, { secretHash, expiresAtMs }: StoredSession): AdminSession => ({
  secretHash,
  csrfToken: deriveCsrfToken(cookie),
  expiresAt: new Date(expiresAtMs),
});
