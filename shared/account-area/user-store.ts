import { randomUUID } from 'node:crypto';
import { isDuplicateKey } from '../platform/storage/mongo-client.ts';
import { isAfter, newestFirst } from '../platform/storage/newest-first.ts';
import type { WebDatabase } from './web-database-store.ts';
import type { MailLanguage } from './mail.ts';
import type { WebUser } from './web-models.ts';

export interface NewUser {
  readonly timezone?: string | undefined;
  readonly language: MailLanguage;
}

/** Web users in MongoDB. All addresses passed here must be normalised. */
export class UserStore {
  readonly #database: WebDatabase;

  constructor(database: WebDatabase) {
    this.#database = database;
  }

  /**
   * Checks that MongoDB responds, by reading a nonexistent document.
   * @throws AppError `service_unavailable` if MongoDB is unavailable or too slow
   */
  async checkReachable(): Promise<void> {
    await this.findById('');
  }

  async findById(id: string): Promise<WebUser | null> {
    return await this.#database.call(({ users }) => users.findOne({ _id: id }).lean<WebUser>().exec());
  }

  async findByEmail(email: string): Promise<WebUser | null> {
    return await this.#database.call(({ users }) => users.findOne({ email }).lean<WebUser>().exec());
  }

  async isKnown(email: string): Promise<boolean> {
    return (await this.#database.call(({ users }) => users.exists({ email }).exec())) !== null;
  }

  /**
   * Finds the user with this address or creates one. If several concurrent calls have the same new address, the unique
   * index lets only one of them create the user.
   */
  async findOrCreate(email: string, options: NewUser): Promise<{ user: WebUser; isNew: boolean }> {
    const known = await this.findByEmail(email);
    if (known !== null) return { user: known, isNew: false };
    const user: WebUser = {
      _id: randomUUID(),
      email,
      timezone: options.timezone ?? 'UTC',
      language: options.language,
      createdAt: new Date(),
      lastLoginAt: null,
      bannedAt: null,
      banReason: null,
      reservedAccountId: randomUUID(),
    };
    try {
      await this.#database.call(({ users }) => users.create(user));
      return { user, isNew: true };
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      const other = await this.findByEmail(email);
      if (other === null) throw error;
      return { user: other, isNew: false };
    }
  }

  /** Records the time of a sign-in and its language, which later mails use. */
  async recordSignIn(id: string, language: MailLanguage): Promise<WebUser | null> {
    return await this.#update({ _id: id }, { lastLoginAt: new Date(), language });
  }

  async setTimezone(id: string, timezone: string): Promise<WebUser | null> {
    return await this.#update({ _id: id }, { timezone });
  }

  /**
   * Bans a user. The user's sessions continue until they are revoked.
   * @returns null if there is no such user
   */
  async ban(id: string, reason: string | null): Promise<WebUser | null> {
    return await this.#update({ _id: id }, { bannedAt: new Date(), banReason: reason });
  }

  async unban(id: string): Promise<WebUser | null> {
    return await this.#update({ _id: id }, { bannedAt: null, banReason: null });
  }

  /**
   * Lists users, newest first.
   * @param after the id of the last user of the page before; null for the first page
   */
  async listPage(after: string | null, limit: number): Promise<WebUser[]> {
    const last = after === null ? null : await this.findById(after);
    if (after !== null && last === null) return [];
    return await this.#database.call(({ users }) =>
      users.find(isAfter(last)).sort(newestFirst).limit(limit).lean<WebUser[]>().exec(),
    );
  }

  /** Yields every user, oldest first. */
  async *list(): AsyncGenerator<WebUser> {
    const { users } = await this.#database.models();
    yield* users.find({}).sort({ createdAt: 1 }).lean<WebUser[]>().cursor() as AsyncIterable<WebUser>;
  }

  /**
   * Reserves a new account id, so that the user can create another account.
   * @returns false if the reserved id is no longer the expected one
   */
  async replaceReservedAccountId(userId: string, expected: string): Promise<boolean> {
    const filter = { _id: userId, reservedAccountId: expected };
    return (await this.#update(filter, { reservedAccountId: randomUUID() })) !== null;
  }

  async #update(
    filter: Partial<Pick<WebUser, '_id' | 'reservedAccountId'>>,
    change: Partial<WebUser>,
  ): Promise<WebUser | null> {
    return await this.#database.call(({ users }) =>
      users
        .findOneAndUpdate(filter, { $set: change }, { returnDocument: 'after', runValidators: true })
        .lean<WebUser>()
        .exec(),
    );
  }
}
