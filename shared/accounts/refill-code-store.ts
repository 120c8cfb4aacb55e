import type { Collection, Database } from '../storage/mongo-client.ts';
import { createRefillCode, hashRefillCode } from './credentials.ts';

/** A refill code at rest; `_id` is its hash, so that a stolen database holds no money. */
export interface RefillCodeDocument {
  readonly _id: string;
  /** The last group, enough to recognise a code by. */
  readonly hint: string;
  readonly balanceNano: bigint;
  readonly freeRequests: number;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  /** Who redeemed it, and under which refill id; null while it is unused. */
  readonly redeemed: { readonly accountId: string; readonly refillId: string; readonly at: Date } | null;
  readonly revokedAt: Date | null;
}

export interface NewRefillCode {
  readonly balanceNano: bigint;
  readonly freeRequests: number;
  readonly expiresAt: Date | null;
}

export class RefillCodeStore {
  readonly #codes: Collection<RefillCodeDocument>;

  constructor(db: Database) {
    this.#codes = db.collection('refill_codes');
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
}
