// decision 0056
import { randomUUID } from 'node:crypto';
import { hashSecret, isSameHash } from '../accounts/credentials.ts';
import type { Config } from '../platform/config/config.ts';
import {
  createSessionTokens,
  deriveCsrfToken,
  deriveKeys,
  hashTokens,
  readToken,
  type SessionKeys,
  type SessionTokenKind,
  type SessionTokens,
} from './session-tokens.ts';
import type { DeviceDescription } from './user-agent.ts';
import type { WebDatabase } from './web-database-store.ts';
import type { WebSession } from './web-models.ts';

const accessLifeMs = 15 * 60_000;
const sessionLifeMs = 24 * 3_600_000;
const rememberedLifeMs = 30 * 24 * 3_600_000;
/** Maximum per user. Above this, a new session replaces the least recently used one. */
export const maxSessions = 50;
const touchIntervalMs = 60_000;

export interface NewSession {
  /** Random by default. Callers set it if it must be recorded before the session starts. */
  readonly id?: string;
  readonly userId: string;
  readonly rememberMe: boolean;
  readonly device: DeviceDescription;
  readonly address: string;
  readonly now?: Date;
}

/** A session with its current tokens in plain text. Only their hashes are stored. */
export interface SessionWithTokens extends SessionTokens {
  readonly session: WebSession;
}

export type RefreshResult =
  | (SessionWithTokens & { readonly kind: 'refreshed' })
  /** A replaced token was used again, so somebody has a copy of it. The session has been ended. */
  | { readonly kind: 'replayed'; readonly session: WebSession }
  | { readonly kind: 'unknown' };

/** Sessions in MongoDB. They are not cached, so a revocation applies to the next request. */
export class SessionStore {
  readonly #database: WebDatabase;
  readonly #keys: SessionKeys;

  constructor(database: WebDatabase, { masterKey }: Pick<Config, 'masterKey'>) {
    this.#database = database;
    this.#keys = deriveKeys(masterKey);
  }

  async start(options: NewSession): Promise<SessionWithTokens> {
    const { id: _id = randomUUID(), userId, rememberMe, device, address, now = new Date() } = options;
    const tokens = createSessionTokens(_id, this.#keys);
    const session: WebSession = {
      _id,
      userId,
      ...hashTokens(tokens),
      ...lifeFrom(now, rememberMe),
      rememberMe,
      osName: device.osName,
      browserName: device.browserName,
      deviceType: device.deviceType,
      ipCreated: address,
      ipLastUsed: address,
      createdAt: now,
      lastUsedAt: now,
    };
    await this.#database.call(({ sessions }) => sessions.create(session));
    await this.#deleteSurplus(userId, _id);
    return { session, ...tokens };
  }

  /** Returns whether the token was issued under our key. Checks only its MAC: it may have expired or been replaced. */
  isIssued(kind: SessionTokenKind, token: string): boolean {
    return readToken(kind, token, this.#keys) !== null;
  }

  /** Returns the CSRF token of the session, until its tokens are replaced. Reads no store. */
  csrfTokenOf({ accessHash }: Pick<WebSession, 'accessHash'>): string {
    return deriveCsrfToken(accessHash, this.#keys);
  }

  /** Returns whether a CSRF token is the session's latest one. */
  isCsrfToken(session: WebSession, token: string): boolean {
    const hash = hashSecret(token);
    // Processes of the last release issue random tokens, of which only the hash is known, and compare only with that.
    return isSameHash(hashSecret(this.csrfTokenOf(session)), hash) || isSameHash(session.csrfHash, hash);
  }

  /** @returns null if the token is forged, expired or replaced, or its session has ended */
  async find(accessToken: string): Promise<WebSession | null> {
    const issued = readToken('access', accessToken, this.#keys);
    if (issued === null) return null;
    const { sessionId, hash } = issued;
    const session = await this.#database.call(({ sessions }) =>
      sessions.findOne({ _id: sessionId }).lean<WebSession>().exec(),
    );
    const now = new Date();
    if (session === null || session.accessExpiresAt <= now || session.expiresAt <= now) return null;
    return isSameHash(session.accessHash, hash) ? session : null;
  }

  /** Records when and from where a session was last used, at most once per minute. Requests do not wait for it. */
  async touch(session: WebSession, address: string): Promise<void> {
    const now = new Date();
    const before = new Date(now.getTime() - touchIntervalMs);
    if (session.lastUsedAt >= before) return;
    await this.#database.call(({ sessions }) =>
      sessions.updateOne(
        { _id: session._id, lastUsedAt: { $lt: before } },
        { $set: { lastUsedAt: now, ipLastUsed: address } },
      ),
    );
  }

  /** Finds the session that a refresh token was issued for, even if the token has been replaced since. */
  async findByRefreshToken(refreshToken: string): Promise<WebSession | null> {
    const issued = readToken('refresh', refreshToken, this.#keys);
    return issued === null ? null : await this.#findLive(issued.sessionId, new Date());
  }

  async #findLive(sessionId: string, now: Date): Promise<WebSession | null> {
    return await this.#database.call(({ sessions }) =>
      sessions
        .findOne({ _id: sessionId, expiresAt: { $gt: now } })
        .lean<WebSession>()
        .exec(),
    );
  }

  /**
   * Replaces the session's tokens. Of several calls with the same token, only one gets new tokens. For the others the
   * token is treated as replayed, and the first of these calls ends the session.
   * @param found the result of `findByRefreshToken` for the token; looked up if omitted
   * @param signal aborted if the new tokens can no longer be delivered. The previous tokens are then restored, so that a
   * client that retries is not mistaken for an attacker.
   */
  async refresh(
    refreshToken: string,
    address: string,
    found?: WebSession,
    signal?: AbortSignal,
  ): Promise<RefreshResult> {
    const issued = readToken('refresh', refreshToken, this.#keys);
    if (issued === null) return { kind: 'unknown' };
    const { sessionId, hash } = issued;
    const now = new Date();
    const session = found ?? (await this.#findLive(sessionId, now));
    if (session === null) return { kind: 'unknown' };
    signal?.throwIfAborted();
    const tokens = createSessionTokens(sessionId, this.#keys);
    const lastUse = { lastUsedAt: now, ipLastUsed: address };
    const refreshed = await this.#replaceTokens(session, hash, tokens, lastUse);
    if (refreshed !== null && signal?.aborted === true) {
      await this.#restoreTokens(session, hash, tokens);
      signal.throwIfAborted();
    }
    if (refreshed !== null) return { kind: 'refreshed', ...refreshed };
    // The MAC proves that we issued the token, so the token must have been replaced.
    const replayed = await this.#database.call(({ sessions }) =>
      sessions.findOneAndDelete({ _id: sessionId }).lean<WebSession>().exec(),
    );
    return replayed === null ? { kind: 'unknown' } : { kind: 'replayed', session: replayed };
  }

  /** @returns null if the session's refresh token is not the expected one, or the session has ended */
  async #replaceTokens(
    { _id, rememberMe }: WebSession,
    refreshHash: string,
    tokens: SessionTokens,
    lastUse: Pick<WebSession, 'lastUsedAt' | 'ipLastUsed'>,
  ): Promise<SessionWithTokens | null> {
    const change = { ...hashTokens(tokens), ...lifeFrom(lastUse.lastUsedAt, rememberMe), ...lastUse };
    const session = await this.#database.call(({ sessions }) =>
      sessions
        .findOneAndUpdate({ _id, refreshHash }, { $set: change }, { returnDocument: 'after' })
        .lean<WebSession>()
        .exec(),
    );
    return session === null ? null : { session, ...tokens };
  }

  /** Undoes a replacement whose tokens were never delivered, unless they have been replaced again. */
  async #restoreTokens(former: WebSession, refreshHash: string, tokens: SessionTokens): Promise<void> {
    const { _id, accessHash, csrfHash, accessExpiresAt, expiresAt } = former;
    await this.#database.call(({ sessions }) =>
      sessions.updateOne(
        { _id, refreshHash: hashTokens(tokens).refreshHash },
        { $set: { accessHash, refreshHash, csrfHash, accessExpiresAt, expiresAt } },
      ),
    );
  }

  /** Lists the user's sessions that have not expired, most recently used first. */
  async list(userId: string): Promise<WebSession[]> {
    return await this.#database.call(({ sessions }) =>
      sessions
        .find({ userId, expiresAt: { $gt: new Date() } })
        .sort({ lastUsedAt: -1 })
        .limit(maxSessions)
        .lean<WebSession[]>()
        .exec(),
    );
  }

  /**
   * Lists the ids of the user's sessions, including this one, as of a moment when this session was still open. A
   * request that ends sessions ends only the listed ones. So if its own session ends in between, it cannot end a
   * session that starts later.
   * @returns null if the session has ended
   */
  async listIdsIfOpen({ _id, userId }: WebSession): Promise<string[] | null> {
    const notExpired = { expiresAt: { $gt: new Date() } };
    return await this.#database.call(async ({ sessions }) => {
      const all = await sessions
        .find({ userId, ...notExpired }, { _id: 1 })
        .lean<Pick<WebSession, '_id'>[]>()
        .exec();
      const isOpen = (await sessions.exists({ _id, ...notExpired }).exec()) !== null;
      return isOpen ? all.map((session) => session._id) : null;
    });
  }

  /** @returns false if the user has no such session */
  async revoke(userId: string, sessionId: string): Promise<boolean> {
    const result = await this.#database.call(({ sessions }) =>
      sessions.deleteOne({ _id: sessionId, userId, expiresAt: { $gt: new Date() } }),
    );
    return result.deletedCount === 1;
  }

  /** @returns how many sessions were ended */
  async revokeAll(userId: string): Promise<number> {
    const result = await this.#database.call(({ sessions }) => sessions.deleteMany({ userId }));
    return result.deletedCount;
  }

  /**
   * Ends these sessions of the user.
   * @returns how many of them existed
   */
  async revokeListed(userId: string, sessionIds: readonly string[]): Promise<number> {
    const result = await this.#database.call(({ sessions }) =>
      sessions.deleteMany({ userId, _id: { $in: sessionIds } }),
    );
    return result.deletedCount;
  }

  async #deleteSurplus(userId: string, newest: string): Promise<void> {
    await this.#database.call(async ({ sessions }) => {
      const surplus = await sessions
        .find({ userId, _id: { $ne: newest } }, { _id: 1 })
        .sort({ lastUsedAt: -1 })
        .skip(maxSessions - 1)
        .lean<Pick<WebSession, '_id'>[]>()
        .exec();
      if (surplus.length > 0) await sessions.deleteMany({ _id: { $in: surplus.map(({ _id }) => _id) } });
    });
  }
}

/** Returns whether a refresh token is the session's latest one. */
export function isCurrentRefreshToken(session: WebSession, refreshToken: string): boolean {
  return isSameHash(session.refreshHash, hashSecret(refreshToken));
}

function lifeFrom(now: Date, rememberMe: boolean): Pick<WebSession, 'accessExpiresAt' | 'expiresAt'> {
  const lifeMs = rememberMe ? rememberedLifeMs : sessionLifeMs;
  return {
    accessExpiresAt: new Date(now.getTime() + accessLifeMs),
    expiresAt: new Date(now.getTime() + lifeMs),
  };
}
