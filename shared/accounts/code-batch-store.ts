// decision 0098
import { AppError } from '../contract/errors.ts';
import type { Config } from '../platform/config/config.ts';
import {
  callMongo,
  isDuplicateKey,
  type Collection,
  type Database,
} from '../platform/storage/mongo-client.ts';
import { createRefillCode, decryptSecret, encryptSecret, hashSecret } from './credentials.ts';
import { nameCode, type NamedCode } from './refill-code-store.ts';

/** The codes that one call created with an `Idempotency-Key`. Kept for ever, so that the key creates no others. */
export interface CodeBatch {
  readonly _id: string;
  /** Of what the call asked for. */
  readonly requestHash: string;
  readonly createdAt: Date;
  readonly codes: readonly NamedCode[];
  /** Absent while it is not revoked. */
  readonly revokedAt?: Date;
}

/** The codes themselves. `_id` is of the batch and its request, because only one of several requests gets the batch. */
interface ShownCodes {
  readonly _id: string;
  /** AES-256-GCM under MASTER_KEY. */
  readonly encrypted: string;
  readonly at: Date;
}

/** For how long a repeated call is told the codes. */
const shownSeconds = 24 * 60 * 60;

const openShownCodes = (db: Database): Collection<ShownCodes> => db.collection('refill_codes_shown');

/** Makes MongoDB delete the codes in time. */
export async function createShownCodesIndex(db: Database): Promise<void> {
  await openShownCodes(db).createIndex({ at: 1 }, { expireAfterSeconds: shownSeconds });
}

/**
 * Batches of codes, in MongoDB. For a day, the codes are also stored encrypted, so that a call whose response was lost can
 * be repeated; with `REVEAL=off` they are not.
 */
export class CodeBatchStore {
  readonly #batches: Collection<CodeBatch>;
  readonly #shown: Collection<ShownCodes>;
  readonly #config: Pick<Config, 'masterKey' | 'revealsKeys'>;

  constructor(db: Database, config: Pick<Config, 'masterKey' | 'revealsKeys'>) {
    this.#batches = db.collection('refill_code_batches');
    this.#shown = openShownCodes(db);
    this.#config = config;
  }

  async find(id: string): Promise<CodeBatch | null> {
    return await callMongo(() => this.#batches.findOne({ _id: id }));
  }

  /**
   * Creates a batch, unless another call has created it. Its codes do not exist yet.
   * @returns the batch, and its codes in plain text; null if another call has created it
   */
  async create(
    id: string,
    requestHash: string,
    count: number,
  ): Promise<{ readonly batch: CodeBatch; readonly codes: string[] | null }> {
    const codes = await this.#keep(
      toShownId({ _id: id, requestHash }),
      Array.from({ length: count }, createRefillCode),
    );
    const batch = { _id: id, requestHash, createdAt: new Date(), codes: codes.map(nameCode) };
    try {
      await callMongo(() => this.#batches.insertOne(batch));
      return { batch, codes };
    } catch (error) {
      const other = isDuplicateKey(error) ? await this.find(id) : null;
      if (other === null) throw error;
      return { batch: other, codes: null };
    }
  }

  /** Revokes a batch, so that codes of it that do not exist yet are never redeemable. @returns null if there is none */
  async revoke(id: string): Promise<CodeBatch | null> {
    await callMongo(() =>
      this.#batches.updateOne(
        { _id: id, revokedAt: { $exists: false } },
        { $set: { revokedAt: new Date() } },
      ),
    );
    return await this.find(id);
  }

  /** @returns the codes in plain text; null if they are not stored any more, or under another master key */
  async reveal(batch: CodeBatch): Promise<string[] | null> {
    const shown = await callMongo(() => this.#shown.findOne({ _id: toShownId(batch) }));
    const codes = shown === null ? null : this.#decrypt(shown);
    const isWhole =
      codes?.length === batch.codes.length &&
      codes.every((code, i) => nameCode(code).id === batch.codes[i]!.id);
    return isWhole ? codes : null;
  }

  /** @returns the codes that an interrupted call has stored for this request; otherwise these, which it stores */
  async #keep(_id: string, codes: string[]): Promise<string[]> {
    if (!this.#config.revealsKeys) return codes;
    const encrypted = encryptSecret(JSON.stringify(codes), this.#config.masterKey);
    try {
      await callMongo(() => this.#shown.insertOne({ _id, encrypted, at: new Date() }));
      return codes;
    } catch (error) {
      if (!isDuplicateKey(error)) throw error;
    }
    const earlier = await callMongo(() => this.#shown.findOne({ _id }));
    if (earlier === null) throw new AppError('service_unavailable', { message: 'codes expired meanwhile' });
    return this.#decrypt(earlier) ?? codes;
  }

  #decrypt({ encrypted }: ShownCodes): string[] | null {
    if (!this.#config.revealsKeys) return null;
    try {
      return JSON.parse(decryptSecret(encrypted, this.#config.masterKey)) as string[];
    } catch {
      // Encrypted under another master key. The codes work, but cannot be shown.
      return null;
    }
  }
}

const toShownId = ({ _id, requestHash }: Pick<CodeBatch, '_id' | 'requestHash'>): string =>
  hashSecret(`${_id}\n${requestHash}`);
