import { createHash } from 'node:crypto';
import { stringify } from 'uuid';
import { hashSecret } from '../accounts/credentials.ts';
import { isRecord } from '../encoding/json-record.ts';

/** A creation that repeated calls make once. */
export interface OnceForEver {
  /** The `Idempotency-Key`. It is the same for all tokens, because a billing system goes on with another token. */
  readonly key: string;
  /** What was asked for, unless it is compared otherwise. A repeated call must ask for the same. */
  readonly request: object;
}

/** Returns the same UUID (version 8) for the same kind of resource and `Idempotency-Key`. */
export function deriveId(kind: 'account' | 'codes', key: string): string {
  const bytes = createHash('sha256').update(`${kind}\n${key}`).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return stringify(bytes);
}

/**
 * Hashes the fields of a request, in any order; a field that is null is the same as none. The hash is kept for ever, so a
 * new field of a request must be optional.
 */
export const hashRequest = (fields: object): string => hashSecret(JSON.stringify(fields, sortFields));

function sortFields(_name: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  const given = Object.entries(value).filter(([, field]) => field !== null);
  return Object.fromEntries(given.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
