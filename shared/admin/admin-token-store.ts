// decision 0098
import { hashSecret } from '../accounts/credentials.ts';
import type { AdminScope } from '../contract/admin-terms.ts';
import { AppError } from '../contract/errors.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisChannels } from '../platform/redis/redis-keys.ts';
import {
  callMongo,
  isDuplicateKey,
  type Collection,
  type Database,
} from '../platform/storage/mongo-client.ts';
import { createTokenSecret, isTokenName } from './admin-scope.ts';

/** A token of the admin API. Names are never used again, so that the audit log stays unambiguous. */
export interface AdminTokenDocument {
  /** The token's name. */
  readonly _id: string;
  readonly scope: AdminScope;
  /** SHA-256, which is enough for a secret of 256 random bits. */
  readonly secretHash: string;
  readonly createdAt: Date;
  /** Null while it works. */
  readonly revokedAt: Date | null;
}

/** Each api process holds all of them in memory. */
const maxLiveTokens = 200;
/** For a list, revoked ones included. */
const maxListed = 10_000;

export interface NewAdminToken {
  readonly name: string;
  readonly scope: AdminScope;
}

/** Tokens of the admin API, in MongoDB. Every change is announced to the api processes. */
export class AdminTokenStore {
  readonly #tokens: Collection<AdminTokenDocument>;
  readonly #redis: RedisClient;

  constructor(db: Database, redis: RedisClient) {
    this.#tokens = db.collection('admin_tokens');
    this.#redis = redis;
  }

  /**
   * @returns the secret, which is stored nowhere
   * @throws AppError `validation_failed` if the name is invalid or was used before, or there are too many tokens
   */
  async create({ name, scope }: NewAdminToken): Promise<{ token: AdminTokenDocument; secret: string }> {
    if (!isTokenName(name))
      throw invalid(
        'The name of a token has up to 63 letters, digits, dots, dashes and underscores, and begins with a letter or a digit.',
      );
    if ((await this.listLive()).length >= maxLiveTokens)
      throw invalid(`There are ${maxLiveTokens} tokens already. Revoke those that nobody uses.`);
    const secret = createTokenSecret();
    const secretHash = hashSecret(secret);
    const token = { _id: name, scope, secretHash, createdAt: new Date(), revokedAt: null };
    try {
      await callMongo(() => this.#tokens.insertOne(token));
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
      throw invalid(
        `The name ${name} was used before. Choose another one: the audit log names tokens by it.`,
      );
    }
    await this.#announce();
    return { token, secret };
  }

  async find(name: string): Promise<AdminTokenDocument | null> {
    return await callMongo(() => this.#tokens.findOne({ _id: name }));
  }

  /** All tokens that work. */
  async listLive(): Promise<AdminTokenDocument[]> {
    return await callMongo(() => this.#tokens.find({ revokedAt: null }).toArray());
  }

  /** All tokens, newest first. */
  async list(): Promise<AdminTokenDocument[]> {
    const all = await callMongo(() => this.#tokens.find({}).limit(maxListed).toArray());
    return all.toSorted((one, other) => other.createdAt.getTime() - one.createdAt.getTime());
  }

  /** Revokes a token. One that is revoked already is announced again. @returns null if there is none with this name */
  async revoke(name: string): Promise<AdminTokenDocument | null> {
    await callMongo(() =>
      this.#tokens.updateOne({ _id: name, revokedAt: null }, { $set: { revokedAt: new Date() } }),
    );
    await this.#announce();
    return await this.find(name);
  }

  /** Deletes a token whose secret nobody has ever got, so that its name can be used. */
  async deleteUnused({ _id, secretHash }: AdminTokenDocument): Promise<void> {
    await callMongo(() => this.#tokens.deleteOne({ _id, secretHash }));
    await this.#announce();
  }

  async #announce(): Promise<void> {
    await callRedis(() => this.#redis.spublish(redisChannels.adminTokens, ''));
  }
}

const invalid = (message: string): AppError => new AppError('validation_failed', { message });
