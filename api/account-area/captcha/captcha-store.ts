import { randomBytes } from 'node:crypto';
import { hashSecret } from '../../../shared/accounts/credentials.ts';
import type { SignInPurpose } from '../../contract/web-auth.ts';
import { callRedis, type RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { Point } from './place-icons.ts';

/** Lifetime of challenges and tokens. */
export const captchaSeconds = 300;

/** The purpose that a captcha is solved for. A token for one purpose is invalid for another. */
export type CaptchaPurpose = SignInPurpose;

interface Binding {
  readonly purpose: CaptchaPurpose;
  /** The caller's network, as returned by `callerNetwork`. */
  readonly network: string;
}

export interface StoredChallenge extends Binding {
  /** Centres of the icons to click, in order, in pixels. */
  readonly solution: readonly Point[];
}

/**
 * Stores challenges and tokens in Redis. Reading one deletes it, so only one of two concurrent callers gets it, and
 * nobody gets it twice.
 */
export class CaptchaStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @returns the challenge's id: 32 unguessable characters */
  async addChallenge({ purpose, network, solution }: StoredChallenge): Promise<string> {
    const id = randomBytes(24).toString('base64url');
    const points = solution.map(({ x, y }) => ({ x, y }));
    await this.#set(redisKeys.captcha(id), { purpose, network, solution: points });
    return id;
  }

  /** @returns null if the challenge never existed, has expired or was already taken */
  async takeChallenge(id: string): Promise<StoredChallenge | null> {
    return await this.#take<StoredChallenge>(redisKeys.captcha(id));
  }

  /** @returns the token; only its hash is stored */
  async addToken({ purpose, network }: Binding): Promise<string> {
    const token = randomBytes(32).toString('base64url');
    await this.#set(redisKeys.captchaToken(hashSecret(token)), { purpose, network });
    return token;
  }

  async takeToken(token: string): Promise<Binding | null> {
    return await this.#take<Binding>(redisKeys.captchaToken(hashSecret(token)));
  }

  async #set(key: string, value: StoredChallenge | Binding): Promise<void> {
    await callRedis(() => this.#redis.set(key, JSON.stringify(value), 'EX', captchaSeconds));
  }

  async #take<T extends Binding>(key: string): Promise<T | null> {
    const value = await callRedis(() => this.#redis.getdel(key));
    return value === null ? null : (JSON.parse(value) as T);
  }
}
