import { createHash } from 'node:crypto';
import { takeInTurns } from '../fairness/work-turns.ts';
import { writeJson } from '../runtime/json-pieces.ts';

/** How long an answer is kept for callers who send its request again under the same Idempotency-Key. */
export const claimLifetimeSeconds = 24 * 60 * 60;

/** An Idempotency-Key with the request it was sent with, as Redis knows them. */
export interface Claim {
  readonly keyHash: string;
  /** Of address and body: the same key with another is a mistake of the caller's. */
  readonly bodyHash: string;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** The part of a claim that is known before the body. */
export const hashIdempotencyKey = digest;

/** @param body as it was parsed: spaces between its fields make no difference */
export function createClaim(key: string, path: string, body: unknown): Claim {
  return { keyHash: hashIdempotencyKey(key), bodyHash: digest(`${path}\n${JSON.stringify(body)}`) };
}

/** The same claim, of a large body: hashed in turns of the account. */
export async function createLargeClaim(
  key: string,
  path: string,
  body: unknown,
  accountId: string,
): Promise<Claim> {
  const hash = createHash('sha256').update(`${path}\n`);
  await takeInTurns(writeJson(body), accountId, (piece) => hash.update(piece));
  return { keyHash: hashIdempotencyKey(key), bodyHash: hash.digest('base64url') };
}
