import { hashSecret } from '../accounts/credentials.ts';
import { isRecord } from '../encoding/json-record.ts';

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
