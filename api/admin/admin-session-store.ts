// decision 0098
import { randomBytes } from 'node:crypto';
import { hashSecret } from '../../shared/accounts/credentials.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';

/** A browser's session of the admin API, as stored. It ends with its token. */
export interface AdminSession {
  /** The hash of the token that started it. */
  readonly secretHash: string;
  readonly csrfHash: string;
}

/** The secrets of a session, which are sent to the browser and not stored. */
export interface StartedSession {
  readonly cookie: string;
  readonly csrfToken: string;
  readonly expiresAt: Date;
}

const lifeSeconds = 8 * 60 * 60;
const secret = /^[A-Za-z0-9_-]{43}$/;
const createSecret = (): string => randomBytes(32).toString('base64url');

/** Sessions of operators' browsers, in Redis. */
export class AdminSessionStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @param secretHash of the token */
  async start(secretHash: string): Promise<StartedSession> {
    const [cookie, csrfToken] = [createSecret(), createSecret()];
    const session: AdminSession = { secretHash, csrfHash: hashSecret(csrfToken) };
    const key = redisKeys.adminSession(hashSecret(cookie));
    await callRedis(() => this.#redis.set(key, JSON.stringify(session), 'EX', lifeSeconds));
    return { cookie, csrfToken, expiresAt: new Date(Date.now() + lifeSeconds * 1_000) };
  }

  /** @returns null if the session has ended or never was */
  async find(cookie: string): Promise<AdminSession | null> {
    if (!secret.test(cookie)) return null;
    const text = await callRedis(() => this.#redis.get(redisKeys.adminSession(hashSecret(cookie))));
    return text === null ? null : (JSON.parse(text) as AdminSession);
  }

  async end(cookie: string): Promise<void> {
    if (secret.test(cookie))
      await callRedis(() => this.#redis.del(redisKeys.adminSession(hashSecret(cookie))));
  }
}
