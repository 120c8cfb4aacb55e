// decision 0057
import { randomInt } from 'node:crypto';
import { AppError, invalidField } from '../contract/errors.ts';
import { readDuplicateKey } from '../platform/storage/mongo-client.ts';
import type { WebDatabase } from './web-database-store.ts';
import { maxLinkId, type WebLink } from './web-models.ts';

/** Per user. */
export const maxLinks = 100;

export type NewLink = Pick<WebLink, 'userId' | 'accountId' | 'label'>;

export interface LinkStoreOptions {
  /** Generates the id of a new link. */
  readonly createId?: () => number;
}

/** Stores which accounts belong to which web user. Each account belongs to at most one. */
export class LinkStore {
  readonly #database: WebDatabase;
  readonly #createId: () => number;

  constructor(database: WebDatabase, options: LinkStoreOptions = {}) {
    this.#database = database;
    this.#createId = options.createId ?? (() => randomInt(1, maxLinkId + 1));
  }

  /**
   * @throws AppError `already_linked` if any user has linked the account; `validation_failed` if the user has too
   * many links
   */
  async create({ userId, accountId, label }: NewLink): Promise<WebLink> {
    if ((await this.#count(userId)) >= maxLinks) throw tooManyLinks();
    const link = await this.#insert({ userId, accountId, label, createdAt: new Date() });
    // Concurrent calls may all have passed the check. Those that find too many links afterwards undo theirs.
    if ((await this.#count(userId)) > maxLinks) {
      await this.delete(userId, link._id);
      throw tooManyLinks();
    }
    return link;
  }

  async #insert(fields: Omit<WebLink, '_id'>): Promise<WebLink> {
    for (;;) {
      const link: WebLink = { _id: this.#createId(), ...fields };
      try {
        await this.#database.call(({ links }) => links.create(link));
        return link;
      } catch (error) {
        const duplicateFields = readDuplicateKey(error);
        if (duplicateFields === null) throw error;
        if (duplicateFields.includes('accountId')) throw new AppError('already_linked', { cause: error });
        // Another link has this id. Try again with another random id.
      }
    }
  }

  /** Lists the user's links, oldest first. The first one is the primary link. */
  async list(userId: string): Promise<WebLink[]> {
    return await this.#database.call(({ links }) =>
      links.find({ userId }).sort({ createdAt: 1, _id: 1 }).lean<WebLink[]>().exec(),
    );
  }

  /** The user's primary link is the oldest one. */
  async findOldest(userId: string): Promise<WebLink | null> {
    return await this.#database.call(({ links }) =>
      links.findOne({ userId }).sort({ createdAt: 1, _id: 1 }).lean<WebLink>().exec(),
    );
  }

  /** @returns null if the user has no such link, even if another user does */
  async find(userId: string, linkId: number): Promise<WebLink | null> {
    return await this.#database.call(({ links }) =>
      links.findOne({ _id: linkId, userId }).lean<WebLink>().exec(),
    );
  }

  /** Finds a link of any user. For support only. */
  async findById(linkId: number): Promise<WebLink | null> {
    return await this.#database.call(({ links }) => links.findOne({ _id: linkId }).lean<WebLink>().exec());
  }

  async findByAccount(accountId: string): Promise<WebLink | null> {
    return await this.#database.call(({ links }) => links.findOne({ accountId }).lean<WebLink>().exec());
  }

  async setLabel(userId: string, linkId: number, label: string): Promise<WebLink | null> {
    return await this.#database.call(({ links }) =>
      links
        .findOneAndUpdate({ _id: linkId, userId }, { $set: { label } }, { returnDocument: 'after' })
        .lean<WebLink>()
        .exec(),
    );
  }

  /** @returns the deleted link; only one of two concurrent callers gets it */
  async delete(userId: string, linkId: number): Promise<WebLink | null> {
    return await this.#database.call(({ links }) =>
      links.findOneAndDelete({ _id: linkId, userId }).lean<WebLink>().exec(),
    );
  }

  async #count(userId: string): Promise<number> {
    return await this.#database.call(({ links }) => links.countDocuments({ userId }).exec());
  }
}

function tooManyLinks(): AppError {
  const message = `You have ${maxLinks} linked accounts already, which is the maximum. Unlink one first.`;
  const msgRu = `У вас уже ${maxLinks} привязанных аккаунтов — это максимум. Сначала отвяжите один из них.`;
  return invalidField(['body', 'api_key'], message, { type: 'too_many_links', msgRu });
}
