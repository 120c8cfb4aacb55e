import type mongoose from 'mongoose';
import type { NoGrantReason } from './no-grant-reasons.ts';
import { callMongo, type Collection, type Database } from '../platform/storage/mongo-client.ts';
import { insertMissing } from '../platform/storage/insert-missing.ts';
import { newestFirst } from '../platform/storage/newest-first.ts';
import { createRefillCode, formatRefillCode, hashRefillCode } from './credentials.ts';

/** A refill code in MongoDB. `_id` is its hash, so a stolen database contains no redeemable codes. */
export interface RefillCodeDocument {
  readonly _id: string;
  /** The last characters of the code, to recognise it by. */
  readonly hint: string;
  readonly balanceNano: bigint;
  readonly freeRequests: number;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  /** Null while the code is unused. */
  readonly redeemed: Redemption | null;
  readonly revokedAt: Date | null;
  /** The call that created it, as the audit log names it. Absent for codes of the first release. */
  readonly batch?: string;
  /** Absent for an issued code. */
  readonly source?: 'signup';
  /** Only for a user who gets no sign-up grant. `redeemed` is then null, and stays so. */
  readonly refusal?: SignupDenialReason;
}

/**
 * A new user's grant is a claim without a code: its code was never issued and is redeemed from the start
 * (`SignupGrantStore`).
 */
export type ClaimSource = 'code' | 'signup';

/**
 * Why a user gets no sign-up grant: too many grants in the user's network, a disposable mail domain, or another user of
 * the same mailbox who has a grant.
 */
export type SignupDenialReason = Extract<
  NoGrantReason,
  'network_limit' | 'disposable_email' | 'mailbox_granted'
>;

export interface Redemption {
  readonly accountId: string;
  /** The id of the refill's ledger entry, which makes crediting idempotent. */
  readonly refillId: string;
  readonly at: Date;
  /** The code as it was issued, now worthless. */
  readonly code: string;
  /** Whether its ledger entry is in MongoDB. Until then it may have to be credited again. */
  readonly settled: boolean;
}

/** A code that an account has claimed, and its value. */
export interface RedemptionClaim extends Redemption {
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

/** What is stored of a code: its hash, and what it is recognised by. */
export interface NamedCode {
  readonly id: string;
  readonly hint: string;
}

export const nameCode = (code: string): NamedCode => ({
  id: hashRefillCode(code),
  hint: `…${code.slice(-4)}`,
});

export type RefillCodeStatus = 'unused' | 'redeemed' | 'expired' | 'revoked';

export const openRefillCodes = (db: Database): Collection<RefillCodeDocument> =>
  db.collection('refill_codes');

type CodeFilter = mongoose.mongo.Filter<RefillCodeDocument>;

/** Sign-up grants are in the same collection. Null matches a field that is absent, which the driver's types do not know. */
const isIssued = { source: null } as object as CodeFilter;
/** Neither redeemed nor revoked. `redeemed` itself is no field of an index, because it has the code. */
const isOpen = { 'redeemed.at': null, revokedAt: null };
/** MongoDB aborts a read of a page that takes longer. */
const limits = { maxTimeMS: 5_000 };

export class RefillCodeStore {
  readonly #codes: Collection<RefillCodeDocument>;

  constructor(db: Database) {
    this.#codes = openRefillCodes(db);
  }

  async createIndexes(): Promise<void> {
    await this.#codes.createIndex({ source: 1, ...newestFirst });
    await this.#codes.createIndex({ source: 1, 'redeemed.at': 1, revokedAt: 1, ...newestFirst });
    // Indexes only pending claims, so it stays small even if there are many codes.
    await this.#codes.createIndex(
      { 'redeemed.at': 1 },
      { partialFilterExpression: { 'redeemed.settled': false } },
    );
  }

  /** @returns the codes in plain text, which is not stored */
  async create(count: number, code: NewRefillCode, batch?: string): Promise<string[]> {
    const codes = Array.from({ length: count }, createRefillCode);
    await this.insertMissing(codes.map(nameCode), code, { batch, createdAt: new Date() });
    return codes;
  }

  /** Inserts those of these codes that do not exist yet. */
  async insertMissing(
    codes: readonly NamedCode[],
    code: NewRefillCode,
    { batch, createdAt }: { readonly batch: string | undefined; readonly createdAt: Date },
  ): Promise<void> {
    const ofBatch = batch === undefined ? {} : { batch };
    const documents = codes.map(({ id: _id, hint }) => ({
      _id,
      hint,
      ...code,
      createdAt,
      redeemed: null,
      revokedAt: null,
      ...ofBatch,
    }));
    await callMongo(() => insertMissing(this.#codes, documents));
  }

  /**
   * Lists codes, newest first. Reads no others, except unused ones that have expired.
   * @param after the `_id` of the last code of the page before; null for the first page
   * @param isUnused only those that still work
   */
  async listPage(
    { isUnused }: { readonly isUnused: boolean },
    after: string | null,
    limit: number,
  ): Promise<RefillCodeDocument[]> {
    const last = after === null ? null : await this.findById(after);
    if (after !== null && last === null) return [];
    const isLive = { $or: [{ expiresAt: null }, { expiresAt: { $gt: new Date() } }] };
    const filter = isUnused ? { ...isIssued, ...isOpen, ...isLive } : isIssued;
    if (last === null) return await this.#readPart(filter, limit);
    // Codes that are created together have the same time. With two reads, an index finds the place among them.
    const atOnce = await this.#readPart(
      { ...filter, createdAt: last.createdAt, _id: { $lt: last._id } },
      limit,
    );
    if (atOnce.length === limit) return atOnce;
    const earlier = { ...filter, createdAt: { $lt: last.createdAt } };
    return [...atOnce, ...(await this.#readPart(earlier, limit - atOnce.length))];
  }

  async #readPart(filter: CodeFilter, limit: number): Promise<RefillCodeDocument[]> {
    return await callMongo(() =>
      this.#codes
        .find(filter, { ...limits, limit, batchSize: limit + 1 })
        .sort(newestFirst)
        .toArray(),
    );
  }

  /** All codes, oldest first. */
  list(): AsyncIterable<RefillCodeDocument> {
    return this.#codes.find(isIssued).sort({ createdAt: 1, _id: 1 });
  }

  /** @param id the hash of the code */
  async findById(id: string): Promise<RefillCodeDocument | null> {
    return await callMongo(() => this.#codes.findOne({ _id: id }));
  }

  /** @param code as it was typed */
  async find(code: string): Promise<RefillCodeDocument | null> {
    return await callMongo(() => this.#codes.findOne({ _id: hashRefillCode(code) }));
  }

  /**
   * Claims a code for an account atomically. Only one of several concurrent callers gets it.
   * @param code as it was typed
   * @returns null if it is unknown, redeemed, expired or revoked
   */
  async claim(code: string, accountId: string, refillId: string): Promise<RedemptionClaim | null> {
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

  /** Claims made before a given time whose ledger entry is not known to be in MongoDB, oldest first. */
  async findClaims(madeBefore: Date, limit: number): Promise<RedemptionClaim[]> {
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
  async settleClaim({ codeId, refillId }: RedemptionClaim): Promise<boolean> {
    const { modifiedCount } = await callMongo(() =>
      this.#codes.updateOne(
        { _id: codeId, 'redeemed.refillId': refillId, 'redeemed.settled': false },
        { $set: { 'redeemed.settled': true } },
      ),
    );
    return modifiedCount === 1;
  }

  /** Makes a claimed code unused again. */
  async releaseClaim({ codeId, refillId }: RedemptionClaim): Promise<void> {
    await callMongo(() =>
      this.#codes.updateOne(
        { _id: codeId, 'redeemed.refillId': refillId, 'redeemed.settled': false },
        { $set: { redeemed: null } },
      ),
    );
  }

  /** Revokes an unredeemed code. Does not change a code that is already revoked. @returns whether it was revoked now */
  async revoke(code: string): Promise<boolean> {
    return await this.revokeById(hashRefillCode(code));
  }

  /** Revokes those of these codes that have not been redeemed. @param ids the hashes of the codes */
  async revokeAll(ids: readonly string[]): Promise<void> {
    await callMongo(() =>
      this.#codes.updateMany(
        { _id: { $in: [...ids] }, redeemed: null, revokedAt: null },
        { $set: { revokedAt: new Date() } },
      ),
    );
  }

  /** Like `revoke`. @param id the hash of the code */
  async revokeById(id: string): Promise<boolean> {
    const { modifiedCount } = await callMongo(() =>
      this.#codes.updateOne(
        { _id: id, redeemed: null, revokedAt: null },
        { $set: { revokedAt: new Date() } },
      ),
    );
    return modifiedCount === 1;
  }
}

export function toClaim(
  { _id, balanceNano, freeRequests, source }: RefillCodeDocument,
  redemption: Redemption,
): RedemptionClaim {
  return { ...redemption, codeId: _id, amountNano: balanceNano, freeRequests, source: source ?? 'code' };
}

/** Returns the account's claim on a code if its ledger entry is not known to be in MongoDB; otherwise null. */
export function findClaimOf(code: RefillCodeDocument, accountId: string): RedemptionClaim | null {
  const { redeemed } = code;
  return redeemed?.accountId === accountId && !redeemed.settled ? toClaim(code, redeemed) : null;
}

export function statusOfRefillCode(code: RefillCodeDocument, now: Date): RefillCodeStatus {
  if (code.redeemed !== null) return 'redeemed';
  if (code.revokedAt !== null) return 'revoked';
  return code.expiresAt !== null && code.expiresAt <= now ? 'expired' : 'unused';
}
