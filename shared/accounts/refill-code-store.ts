import type mongoose from 'mongoose';
import type { RefillCodeStatus } from '../contract/admin-terms.ts';
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

export const openRefillCodes = (db: Database): Collection<RefillCodeDocument> =>
  db.collection('refill_codes');

type CodeQuery = mongoose.mongo.Filter<RefillCodeDocument>;

/** Sign-up grants are in the same collection. Null matches a field that is absent, which the driver's types do not know. */
const isIssued = { source: null } as object as CodeQuery;
/** Neither redeemed nor revoked. `redeemed` itself is no field of an index, because it has the code. */
const isOpen = { 'redeemed.at': null, revokedAt: null };
const isLive = (now: Date) => ({ $or: [{ expiresAt: null }, { expiresAt: { $gt: now } }] });
const everSince = { $gt: new Date(0) };

const filters: Readonly<Record<RefillCodeStatus, (now: Date) => object>> = {
  unused: (now) => ({ ...isOpen, ...isLive(now) }),
  expired: (now) => ({ ...isOpen, expiresAt: { $lte: now } }),
  redeemed: () => ({ 'redeemed.at': everSince, revokedAt: null }),
  revoked: () => ({ 'redeemed.at': null, revokedAt: everSince }),
};

/** An order of codes, latest first, which an index has. Codes of one time come in the order of creation, or against it. */
interface CodeOrder {
  readonly field: 'createdAt' | 'redeemed.at' | 'revokedAt';
  readonly timeOf: (code: RefillCodeDocument) => Date;
  readonly sort: Readonly<Record<string, 1 | -1>>;
  /** Those of the same time that come after a code, in parts that an index has. */
  readonly restOf: (code: RefillCodeDocument) => object[];
}

const createdAfter = ({ createdAt, _id }: RefillCodeDocument): object[] => [
  { createdAt, _id: { $gt: _id } },
  { createdAt: { $gt: createdAt } },
];
const byCreation: CodeOrder = {
  field: 'createdAt',
  timeOf: ({ createdAt }) => createdAt,
  sort: newestFirst,
  restOf: ({ _id }) => [{ _id: { $lt: _id } }],
};
const orders: Readonly<Partial<Record<RefillCodeStatus, CodeOrder>>> = {
  redeemed: {
    field: 'redeemed.at',
    timeOf: ({ redeemed, createdAt }) => redeemed?.at ?? createdAt,
    sort: { 'redeemed.at': -1, createdAt: 1, _id: 1 },
    restOf: createdAfter,
  },
  revoked: {
    field: 'revokedAt',
    timeOf: ({ revokedAt, createdAt }) => revokedAt ?? createdAt,
    sort: { revokedAt: -1, createdAt: 1, _id: 1 },
    restOf: createdAfter,
  },
};

export interface CodeFilter {
  /** Null for all. */
  readonly status: RefillCodeStatus | null;
  /** Only those that this call created; null for all. */
  readonly batch: string | null;
}
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
    await this.#codes.createIndex({ batch: 1, ...newestFirst });
    // Indexes only pending claims, so it stays small even if there are many codes.
    await this.#codes.createIndex(
      { 'redeemed.at': 1 },
      { partialFilterExpression: { 'redeemed.settled': false } },
    );
    await this.#codes.createIndex(
      { 'redeemed.refillId': 1 },
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
    {
      batch,
      createdAt,
      revokedAt = null,
    }: {
      readonly batch: string | undefined;
      readonly createdAt: Date;
      readonly revokedAt?: Date | null;
    },
  ): Promise<void> {
    const ofBatch = batch === undefined ? {} : { batch };
    const documents = codes.map(({ id: _id, hint }) => ({
      _id,
      hint,
      ...code,
      createdAt,
      redeemed: null,
      revokedAt,
      ...ofBatch,
    }));
    await callMongo(() => insertMissing(this.#codes, documents));
  }

  /**
   * Lists codes, newest first; redeemed or revoked ones of all batches by the time of that. Reads no others, except that a
   * page of unused or expired codes reads both.
   * @param after the `_id` of the last code of the page before; null for the first page
   */
  async listPage(
    { status, batch }: CodeFilter,
    after: string | null,
    limit: number,
  ): Promise<RefillCodeDocument[]> {
    const last = after === null ? null : await this.findById(after);
    if (after !== null && last === null) return [];
    const order = (batch === null && status !== null ? orders[status] : undefined) ?? byCreation;
    const filter = {
      ...isIssued,
      ...(status !== null && filters[status](new Date())),
      ...(batch !== null && { batch }),
    };
    if (last === null) return await this.#readPart(filter, order, limit);
    // Codes that are created together have the same time. With several reads, an index finds the place among them.
    const time = order.timeOf(last);
    const atOnce = order.restOf(last).map((rest) => ({ ...rest, [order.field]: time }));
    const found: RefillCodeDocument[] = [];
    for (const part of [...atOnce, { [order.field]: { $lt: time } }])
      if (found.length < limit)
        found.push(...(await this.#readPart({ ...filter, ...part }, order, limit - found.length)));
    return found;
  }

  async #readPart(filter: CodeQuery, { sort }: CodeOrder, limit: number): Promise<RefillCodeDocument[]> {
    return await callMongo(() =>
      this.#codes
        .find(filter, { ...limits, limit, batchSize: limit + 1 })
        .sort(sort)
        .toArray(),
    );
  }

  /** The codes that one call created, at most `maxCodesOfBatch`. */
  async listBatch(batch: string): Promise<RefillCodeDocument[]> {
    return await callMongo(() => this.#codes.find({ batch }, limits).toArray());
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
    return found.flatMap(listClaims);
  }

  /** Those of these refills' claims whose ledger entry is not known to be in MongoDB. */
  async findPendingByRefill(refillIds: readonly string[]): Promise<RedemptionClaim[]> {
    const pending = { 'redeemed.settled': false, 'redeemed.refillId': { $in: [...refillIds] } };
    return (await callMongo(() => this.#codes.find(pending, limits).toArray())).flatMap(listClaims);
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

  /** Revokes those of these codes that have not been redeemed. @param ids the hashes of the codes. @returns how many */
  async revokeAll(ids: readonly string[]): Promise<number> {
    const { modifiedCount } = await callMongo(() =>
      this.#codes.updateMany(
        { _id: { $in: [...ids] }, redeemed: null, revokedAt: null },
        { $set: { revokedAt: new Date() } },
      ),
    );
    return modifiedCount;
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

const listClaims = (code: RefillCodeDocument): RedemptionClaim[] =>
  code.redeemed === null ? [] : [toClaim(code, code.redeemed)];

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
