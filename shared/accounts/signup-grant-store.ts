import type { NoGrantReason } from './no-grant-reasons.ts';
import {
  callMongo,
  isDuplicateKey,
  type Collection,
  type Database,
} from '../platform/storage/mongo-client.ts';
import {
  openRefillCodes,
  toClaim,
  type NewRefillCode,
  type RedemptionClaim,
  type RefillCodeDocument,
  type Redemption,
  type SignupDenialReason,
} from './refill-code-store.ts';

export type GrantAmounts = Pick<NewRefillCode, 'balanceNano' | 'freeRequests'>;

/** What an account starts with, and if that is nothing, why. */
export interface SignupGrant extends GrantAmounts {
  readonly denialReason: NoGrantReason | null;
}

/** Whether a user gets the sign-up grant. Made once per user, and never changed. */
export interface SignupDecision extends GrantAmounts {
  readonly at: Date;
  /** Null if the user gets it. */
  readonly denialReason: SignupDenialReason | null;
  /** The account that gets it; null if it is denied. */
  readonly accountId: string | null;
  /** What may still have to be credited. Null if it is denied, or its ledger entry is in MongoDB. */
  readonly claim: RedemptionClaim | null;
}

/** Which user a mailbox's only grant belongs to. It outlives the user. */
interface GrantedMailbox {
  /** A keyed hash of the mailbox. */
  readonly _id: string;
  readonly userId: string;
  readonly at: Date;
}

export interface KnownGrants {
  /** What was decided for the user, if anything was. */
  readonly decision: SignupDecision | null;
  /** The user that the grant of the mailbox belongs to, if one was reserved. */
  readonly mailboxUserId: string | null;
}

/**
 * Sign-up grants in MongoDB. A user has one document, which is either a redemption claim or a denial, so concurrent
 * requests cannot decide differently. A mailbox has one document, too, which reserves its only grant for a user.
 */
export class SignupGrantStore {
  readonly #codes: Collection<RefillCodeDocument>;
  readonly #mailboxes: Collection<GrantedMailbox>;

  constructor(db: Database) {
    this.#codes = openRefillCodes(db);
    this.#mailboxes = db.collection('signup_mailboxes');
  }

  async find(userId: string): Promise<SignupDecision | null> {
    const found = await callMongo(() => this.#codes.findOne({ _id: grantIdOf(userId) }));
    return found === null ? null : toDecision(found);
  }

  /** @param mailbox its keyed hash */
  async findKnown(userId: string, mailbox: string): Promise<KnownGrants> {
    const [decision, reserved] = await Promise.all([
      this.find(userId),
      callMongo(() => this.#mailboxes.findOne({ _id: mailbox })),
    ]);
    return { decision, mailboxUserId: reserved?.userId ?? null };
  }

  /**
   * Reserves the mailbox's only grant for the user. This is the moment from which the user has it.
   * @returns false if it is reserved for another user
   */
  async reserveMailbox(mailbox: string, userId: string): Promise<boolean> {
    const _id = mailbox;
    const found = await callMongo(async () => {
      await ignoreDuplicate(
        this.#mailboxes.updateOne({ _id }, { $setOnInsert: { userId, at: new Date() } }, { upsert: true }),
      );
      return await this.#mailboxes.findOne({ _id });
    });
    return found?.userId === userId;
  }

  /** Claims the grant for an account. @returns the decision in force, which may be an earlier one */
  async claim(userId: string, accountId: string, amounts: GrantAmounts): Promise<SignupDecision> {
    const at = new Date();
    const redeemed: Redemption = { accountId, refillId: grantIdOf(userId), at, code: '', settled: false };
    return await this.#decide(userId, { ...amounts, createdAt: at, redeemed });
  }

  /** Records that the user gets no grant. @returns the decision in force, which may be an earlier one */
  async deny(userId: string, reason: SignupDenialReason): Promise<SignupDecision> {
    const at = new Date();
    return await this.#decide(userId, {
      balanceNano: 0n,
      freeRequests: 0,
      createdAt: at,
      redeemed: null,
      refusal: reason,
    });
  }

  async #decide(
    userId: string,
    fields: GrantAmounts & Pick<RefillCodeDocument, 'createdAt' | 'redeemed' | 'refusal'>,
  ): Promise<SignupDecision> {
    const _id = grantIdOf(userId);
    const document = { hint: '', expiresAt: null, revokedAt: null, source: 'signup' as const, ...fields };
    const found = await callMongo(async () => {
      await ignoreDuplicate(this.#codes.updateOne({ _id }, { $setOnInsert: document }, { upsert: true }));
      return await this.#codes.findOne({ _id });
    });
    if (found === null) throw new Error(`The decision about the sign-up grant of ${userId} is missing.`);
    return toDecision(found);
  }
}

/** Also the refill id of the grant. */
const grantIdOf = (userId: string): string => `signup-${userId}`;

/** A concurrent call has created the document. */
async function ignoreDuplicate(upsert: Promise<unknown>): Promise<void> {
  await upsert.catch((error: unknown) => {
    if (!isDuplicateKey(error)) throw error;
  });
}

function toDecision(document: RefillCodeDocument): SignupDecision {
  const { balanceNano, freeRequests, createdAt: at, redeemed, refusal = null } = document;
  return {
    balanceNano,
    freeRequests,
    at,
    denialReason: refusal,
    accountId: redeemed?.accountId ?? null,
    claim: redeemed === null || redeemed.settled ? null : toClaim(document, redeemed),
  };
}
