// decision 0069
import type { Config } from '../../shared/platform/config/config.ts';
import type { SignupDenialReason } from '../../shared/accounts/refill-code-store.ts';
import type { SignupDecision, SignupGrantStore } from '../../shared/accounts/signup-grant-store.ts';
import type { WebUser } from '../../shared/account-area/web-models.ts';
import { isDisposable } from './disposable-domains.ts';
import type { GrantQuota } from './grant-quota.ts';
import { createPartyHash, type HashParty } from './limits.ts';
import { findMailbox } from './mailbox.ts';

export interface SignupGrantsParts {
  readonly config: Pick<Config, 'masterKey' | 'signup'>;
  readonly quota: Pick<GrantQuota, 'take'>;
  readonly store: Pick<SignupGrantStore, 'findKnown' | 'reserveMailbox' | 'claim' | 'deny'>;
}

/**
 * Decides which new users get the sign-up grant: one per mailbox, none for disposable addresses, and only so many a day
 * in one network. The decision is stored with the claim, in MongoDB, and never changes.
 */
export class SignupGrants {
  readonly #parts: SignupGrantsParts;
  readonly #hashMailbox: HashParty;

  constructor(parts: SignupGrantsParts) {
    this.#parts = parts;
    this.#hashMailbox = createPartyHash(parts.config.masterKey, 'signup mailboxes');
  }

  /**
   * Decides whether the user gets the grant, or returns the earlier decision. A crash between any two steps neither
   * exceeds the network's quota nor costs the user the grant: a repeated request takes the same part of the quota, and
   * once the mailbox is reserved, none.
   * @param network as returned by `callerNetwork`
   * @returns null if there are no grants, which decides nothing for later
   */
  async decide(user: WebUser, network: string): Promise<SignupDecision | null> {
    const { _id: userId, email, reservedAccountId: accountId } = user;
    const { store, quota, config } = this.#parts;
    const { balanceNano, freeRequests, grantsPerNetwork, noGrantDomains } = config.signup;
    const mailbox = this.#hashMailbox(findMailbox(email));
    const { decision, mailboxUserId } = await store.findKnown(userId, mailbox);
    if (decision !== null) return decision;
    if (grantsPerNetwork === 0 || (balanceNano === 0n && freeRequests === 0)) return null;
    const deny = (reason: SignupDenialReason) => store.deny(userId, reason);
    if (mailboxUserId !== userId) {
      if (isDisposable(email, noGrantDomains)) return await deny('disposable_email');
      if (mailboxUserId !== null) return await deny('mailbox_granted');
      if (!(await quota.take(userId, network))) return await deny('network_limit');
      if (!(await store.reserveMailbox(mailbox, userId))) return await deny('mailbox_granted');
    }
    return await store.claim(userId, accountId, { balanceNano, freeRequests });
  }
}
