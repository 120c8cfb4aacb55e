// decision 0098
import { hashSecret, isSameHash } from '../../shared/accounts/credentials.ts';
import { adminTokenName, type AdminCaller } from '../../shared/admin/admin-scope.ts';
import type { AdminTokenStore } from '../../shared/admin/admin-token-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { Limits } from '../account-area/limits.ts';
import { AdminSessionStore } from '../../shared/admin/admin-session-store.ts';
import { TokenRegistry } from './token-registry.ts';
import { WrongTokens } from './wrong-tokens.ts';

export interface AdminAccessParts {
  readonly config: Pick<Config, 'adminToken'>;
  readonly redis: RedisClient;
  readonly store: Pick<AdminTokenStore, 'listLive'>;
  readonly limits: Pick<Limits, 'take' | 'check'>;
  readonly log: Logger;
}

/** Finds out who calls the admin API. */
export class AdminAccess {
  readonly tokens: TokenRegistry;
  readonly sessions: AdminSessionStore;
  readonly wrongTokens: WrongTokens;
  /** The hash of `ADMIN_TOKEN`; null if there is none. */
  readonly #adminHash: string | null;

  constructor({ config, redis, store, limits, log }: AdminAccessParts) {
    this.tokens = new TokenRegistry(store, log);
    this.sessions = new AdminSessionStore(redis);
    this.wrongTokens = new WrongTokens(limits);
    this.#adminHash = config.adminToken === null ? null : hashSecret(config.adminToken);
  }

  /** Whether there is any token. Without one, there is no admin API. @throws AppError `service_unavailable` */
  async exists(): Promise<boolean> {
    return this.#adminHash !== null || (await this.tokens.hasAny());
  }

  /**
   * Finds the caller with this token.
   * @throws AppError `invalid_api_key`; `too_many_attempts` if the network has sent too many wrong ones
   */
  async findByToken(secret: string, network: string): Promise<AdminCaller> {
    const token = await this.tokens.find(secret);
    if (token !== null)
      return { name: token._id, scope: token.scope, secretHash: token.secretHash, session: null };
    // Digests are compared, so that the time does not depend on how much of the token is right.
    const secretHash = hashSecret(secret);
    if (this.#adminHash === null || !isSameHash(this.#adminHash, secretHash)) {
      await this.wrongTokens.count(network, secretHash);
      throw wrongToken();
    }
    await this.wrongTokens.check(network);
    return { name: adminTokenName, scope: 'all', secretHash, session: null };
  }

  /** Finds the caller with this session cookie. @returns null if the session or its token has ended */
  async findBySession(cookie: string): Promise<AdminCaller | null> {
    const session = await this.sessions.find(cookie);
    if (session === null) return null;
    const { secretHash } = session;
    if (this.#adminHash !== null && isSameHash(this.#adminHash, secretHash))
      return { name: adminTokenName, scope: 'all', secretHash, session };
    const token = await this.tokens.findByHash(secretHash);
    return token === null ? null : { name: token._id, scope: token.scope, secretHash, session };
  }
}

const wrongToken = (): AppError =>
  new AppError('invalid_api_key', {
    message:
      'This token does not exist or has been revoked. "admin token list" shows the tokens that work; their secrets cannot be shown again.',
    headers: { 'www-authenticate': 'Bearer realm="admin", error="invalid_token"' },
  });
