/**
 * What a token of the admin API may do: `read` only reads; `billing` also creates accounts, credits and codes; `all` does
 * everything.
 */
export const adminScopes = ['read', 'billing', 'all'] as const;
export type AdminScope = (typeof adminScopes)[number];

/** Whether a token with this scope may do what needs the other scope. */
export const allowsScope = (scope: AdminScope, needed: AdminScope): boolean =>
  adminScopes.indexOf(scope) >= adminScopes.indexOf(needed);

/**
 * Characters of the reason of a change, which the audit log keeps. In an address it is shorter: the longest still fits into
 * the query of a call, whatever its letters are.
 */
export const maxReasonLength = 500;
export const maxReasonInQuery = 300;

/** Codes that one call creates, and one event of the audit log names. */
export const maxCodesOfBatch = 1_000;

export const refillCodeStates = ['unused', 'redeemed', 'expired', 'revoked'] as const;
export type RefillCodeStatus = (typeof refillCodeStates)[number];
