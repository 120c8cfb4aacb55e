import { createHash } from 'node:crypto';
import { processInTurns } from '../fairness/work-turns.ts';
import { writeJson } from '../encoding/json-pieces.ts';

/** How long a response is stored for callers that retry the request with the same Idempotency-Key. */
export const claimLifetimeSeconds = 24 * 60 * 60;

/** An Idempotency-Key and its request, as Redis stores them. */
export interface IdempotencyClaim {
  readonly keyHash: string;
  /** Hash of path and body. The same key with another body is a caller error. */
  readonly bodyHash: string;
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** The part of a claim that is known before the body. */
export const hashIdempotencyKey = digest;

/** @param body the parsed body, so that whitespace between its fields makes no difference */
export function createIdempotencyClaim(key: string, path: string, body: unknown): IdempotencyClaim {
  return { keyHash: hashIdempotencyKey(key), bodyHash: digest(`${path}\n${JSON.stringify(body)}`) };
}

/** Creates the same claim for a large body, which is hashed in the account's work turns. */
export async function createLargeIdempotencyClaim(
  key: string,
  path: string,
  body: unknown,
  accountId: string,
): Promise<IdempotencyClaim> {
  const hash = createHash('sha256').update(`${path}\n`);
  await processInTurns(writeJson(body), accountId, (piece) => hash.update(piece));
  return { keyHash: hashIdempotencyKey(key), bodyHash: hash.digest('base64url') };
}
