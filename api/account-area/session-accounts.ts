// decision 0099
import { hashSecret } from '../../shared/accounts/credentials.ts';
import type { WebSession } from '../../shared/account-area/web-models.ts';
import type { WebStores } from '../../shared/account-area/web-stores.ts';
import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import { SingleFlight } from '../../shared/platform/storage/single-flight.ts';

/** What a call sends to act for an account with a session instead of the account's key. */
export interface SessionAccess {
  /** The access token, from the cookie. */
  readonly token: string;
  /** The account's id in the account area: that of its link. */
  readonly linkId: number;
}

/** The stores' answer to a `SessionAccess`. */
export interface FoundAccess {
  /** Null if the session has ended. */
  readonly session: WebSession | null;
  /** Null if the session's user has no such account. */
  readonly accountId: string | null;
}

const maxEntries = 10_000;
/**
 * How long a look-up is believed, from its start. An ended session or an unlinked account stops acting within this time
 * in every process, without an announcement that could be lost. It saves the look-ups of pages, which send several calls
 * at once.
 */
const maxAgeMs = 500;

/** A result; an object, because the cache cannot hold null. */
interface Entry<T> {
  readonly value: T | null;
}

/** Look-ups that are shared and believed for a moment, whether or not they found something. */
class RecentLookUps<T> {
  readonly #recent = createRecentEntries<string, Entry<T>>(maxEntries, maxAgeMs);
  readonly #running: SingleFlight<T | null>;

  constructor(what: string) {
    this.#running = new SingleFlight(what);
  }

  find(key: string): Entry<T> | undefined {
    return this.#recent.get(key);
  }

  async read(key: string, query: () => Promise<T | null>): Promise<T | null> {
    // A look-up that is running may have begun too long ago. If not, its result is recent once it ends.
    return await this.#running.runNext(key, async () => {
      const recent = this.#recent.get(key);
      if (recent !== undefined) return recent.value;
      const startedMs = performance.now();
      const value = await query();
      const ttl = Math.floor(maxAgeMs - (performance.now() - startedMs));
      if (ttl > 0) this.#recent.set(key, { value }, { ttl });
      return value;
    });
  }
}

/** Finds the account that a session acts for: in the process's cache, then in MongoDB. */
export class SessionAccounts {
  readonly #web: Pick<WebStores, 'sessions' | 'links'>;
  readonly #sessions = new RecentLookUps<WebSession>('session lookup');
  readonly #accountIds = new RecentLookUps<string>('linked account lookup');

  constructor(web: Pick<WebStores, 'sessions' | 'links'>) {
    this.#web = web;
  }

  /** Returns what was found a moment ago; undefined if it must be looked up. */
  findRecent({ token, linkId }: SessionAccess): FoundAccess | undefined {
    const found = this.#sessions.find(hashSecret(token));
    if (found === undefined) return undefined;
    if (found.value === null) return { session: null, accountId: null };
    const account = this.#accountIds.find(keyOf(found.value, linkId));
    return account && { session: found.value, accountId: account.value };
  }

  /** Like `findRecent`, but looks up what is not known. @throws AppError `service_unavailable` */
  async find({ token, linkId }: SessionAccess): Promise<FoundAccess> {
    const { sessions, links } = this.#web;
    const session = await this.#sessions.read(hashSecret(token), () => sessions.find(token));
    if (session === null) return { session, accountId: null };
    const { userId } = session;
    const accountId = await this.#accountIds.read(
      keyOf(session, linkId),
      async () => (await links.find(userId, linkId))?.accountId ?? null,
    );
    return { session, accountId };
  }
}

const keyOf = ({ userId }: WebSession, linkId: number): string => `${userId}:${linkId}`;
