import { callMongo, isDuplicateKey, type Collection, type Database } from '../storage/mongo-client.ts';
import { createRefillCode, formatRefillCode, hashRefillCode } from './credentials.ts';

/** A refill code at rest; `_id` is its hash, so that a stolen database holds no money. */
export interface RefillCodeDocument {
  readonly _id: string;
  /** The last group, enough to recognise a code by. */
  readonly hint: string;
  readonly balanceNano: bigint;
  readonly freeRequests: number;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  /** Who redeemed it; null while it is unused. */
  readonly redeemed: Redemption | null;
  readonly revokedAt: Date | null;
  /** Absent for a code. */
  readonly source?: 'signup';
}

/** Money that a new user is given is a claim without a code: one that was never issued, and is redeemed from the start. */
export type ClaimSource = 'code' | 'signup';

export interface Redemption {
  readonly accountId: string;
  /** The id of its ledger entry: what makes crediting it repeatable. */
  readonly refillId: string;
  readonly at: Date;
  /** The code as it was issued, which opens nothing any more. */
  readonly code: string;
  /** Its ledger entry is in MongoDB; until then it may have to be credited again. */
  readonly settled: boolean;
}

/** A code that an account has taken, and what it is worth. */
export interface Claim extends Redemption {
  readonly codeId: string;
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly source: ClaimSource;
}

export interface NewRefillCode {
  readonly balanceNano: bigint;
  readonly freeRequests: number;
  readonly expiresAt: Date | null;
}

export type RefillCodeStatus = 'unused' | 'redeemed' | 'expired' | 'revoked';

export class RefillCodeStore {
  readonly #codes: Collection<RefillCodeDocument>;

  constructor(db: Database) {
    this.#codes = db.collection('refill_codes');
  }

  async createIndexes(): Promise<void> {
    await this.#codes.createIndex({ createdAt: 1 });
    // Only claims that are under way: what finishing them looks for stays small however many codes there are.
    await this.#codes.createIndex(
      { 'redeemed.at': 1 },
      { partialFilterExpression: { 'redeemed.settled': false } },
    );
  }

  /** @returns the codes in clear: they are nowhere else. */
  async create(count: number, code: NewRefillCode): Promise<string[]> {
    const codes = Array.from({ length: count }, createRefillCode);
    const createdAt = new Date();
    await this.#codes.insertMany(
      codes.map((text) => ({
        _id: hashRefillCode(text),
        hint: `…${text.slice(-4)}`,
        ...code,
        createdAt,
        redeemed: null,
        revokedAt: null,
      })),
    );
    return codes;
  }

  /** Every code, oldest first. */
  list(): AsyncIterable<RefillCodeDocument> {
    return this.#codes.find({ source: { $exists: false } }).sort({ createdAt: 1 });
  }

  /**
   * Claims what a new user is given, for the user's first account. A user has one such claim for ever.
   * @returns the claim, also where it was made before for this account; null where it is settled, or was made for another
   */
  async claimSignupGrant(
    userId: string,
    accountId: string,
    grant: Pick<NewRefillCode, 'balanceNano' | 'freeRequests'>,
  ): Promise<Claim | null> {
    const _id = `signup-${userId}`;
    const at = new Date();
    const redeemed: Redemption = { accountId, refillId: _id, at, code: '', settled: false };
    const made = {
      hint: '',
      ...grant,
      createdAt: at,
      expiresAt: null,
      redeemed,
      revokedAt: null,
      source: 'signup' as const,
    };
    const found = await callMongo(async () => {
      await this.#codes
        .updateOne({ _id }, { $setOnInsert: made }, { upsert: true })
        .catch((error: unknown) => {
          // Another call has made it meanwhile.
          if (!isDuplicateKey(error)) throw error;
        });
      return await this.#codes.findOne({ _id });
    });
    const own = found?.redeemed ?? null;
    if (found === null || own === null || own.settled) return null;
    return own.accountId === accountId ? toClaim(found, own) : null;
  }

  /** @param code as it was typed */
  async find(code: string): Promise<RefillCodeDocument | null> {
    return await callMongo(() => this.#codes.findOne({ _id: hashRefillCode(code) }));
  }

  /**
   * Takes a code for an account, in one step: of all who try, one gets it.
   * @param code as it was typed
   * @returns null where it is unknown, redeemed, expired or revoked
   */
  async claim(code: string, accountId: string, refillId: string): Promise<Claim | null> {
    const at = new Date();
    const redeemed: Redemption = { accountId, refillId, at, code: formatRefillCode(code), settled: false };
    const unused = {
      redeemed: null,
      revokedAt: null,
      $or: [{ expiresAt: null }, { expiresAt: { $gt: at } }],
    };
    const claimed = await callMongo(() =>
      this.#codes.findOneAndUpdate({ _id: hashRefillCode(code), ...unused }, { $set: { redeemed } }),
    );
    return claimed === null ? null : toClaim(claimed, redeemed);
  }

  /** Claims made before a time whose ledger entry is not known to be in MongoDB, oldest first. */
  async findClaims(madeBefore: Date, limit: number): Promise<Claim[]> {
    const found = await callMongo(() =>
      this.#codes
        .find({ 'redeemed.settled': false, 'redeemed.at': { $lt: madeBefore } })
        .sort({ 'redeemed.at': 1 })
        .limit(limit)
        .toArray(),
    );
    return found.flatMap((code) => (code.redeemed === null ? [] : toClaim(code, code.redeemed)));
  }

  /** @returns whether it was settled now */
  async settleClaim({ codeId, refillId }: Claim): Promise<boolean> {
    const { modifiedCount } = await callMongo(() =>
      this.#codes.updateOne(
        { _id: codeId, 'redeemed.refillId': refillId, 'redeemed.settled': false },
        { $set: { 'redeemed.settled': true } },
      ),
    );
    return modifiedCount === 1;
  }

  /** Makes a claimed code unused again. */
  async releaseClaim({ codeId, refillId }: Claim): Promise<void> {
    await callMongo(() =>
      this.#codes.updateOne(
        { _id: codeId, 'redeemed.refillId': refillId, 'redeemed.settled': false },
        { $set: { redeemed: null } },
      ),
    );
  }

  /** Revokes a code that nobody has redeemed; one that is revoked keeps its time. @returns whether it was revoked now */
  async revoke(code: string): Promise<boolean> {
    const { modifiedCount } = await this.#codes.updateOne(
      { _id: hashRefillCode(code), redeemed: null, revokedAt: null },
      { $set: { revokedAt: new Date() } },
    );
    return modifiedCount === 1;
  }
}

function toClaim(
  { _id, balanceNano, freeRequests, source }: RefillCodeDocument,
  redemption: Redemption,
): Claim {
  return { ...redemption, codeId: _id, amountNano: balanceNano, freeRequests, source: source ?? 'code' };
}

/** The claim of an account on a code, where its ledger entry is not known to be in MongoDB. */
export function findClaimOf(code: RefillCodeDocument, accountId: string): Claim | null {
  const { redeemed } = code;
  return redeemed?.accountId === accountId && !redeemed.settled ? toClaim(code, redeemed) : null;
}

/** What a code is good for at a time. */
export function statusOfRefillCode(code: RefillCodeDocument, now: Date): RefillCodeStatus {
  if (code.redeemed !== null) return 'redeemed';
  if (code.revokedAt !== null) return 'revoked';
  return code.expiresAt !== null && code.expiresAt <= now ? 'expired' : 'unused';
}
