import { createHash } from 'node:crypto';

/** How long an answer is kept for callers who send its request again under the same Idempotency-Key. */
export const claimLifetimeSeconds = 24 * 60 * 60;

/** An Idempotency-Key with the request it was sent with, as Redis knows them. */
export interface Claim {
  readonly keyHash: string;
  /** Of address and body: the same key with another is a mistake of the caller's. */
  readonly bodyHash: string;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** @param body as it was parsed: spaces between its fields make no difference */
export function createClaim(key: string, path: string, body: unknown): Claim {
  return { keyHash: digest(key), bodyHash: digest(`${path}\n${JSON.stringify(body)}`) };
}
