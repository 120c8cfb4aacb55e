import type { DeadLetter } from '../ledger/dead-letters-store.ts';
import { findValue, parseEvent } from '../ledger/usage-event.ts';
import { readSource, sourceOf, type RefillSource } from '../ledger/refill-rows.ts';
import { callMongo } from '../platform/storage/mongo-client.ts';
import type { AdminDeps } from './admin-deps.ts';

export type ClaimReads = Pick<AdminDeps, 'codes' | 'ledger'>;

/** Where refills came from that the gateway credits again by itself, or has credited again; by refill id. */
export type CreditedAgain = ReadonlyMap<string, RefillSource>;

/** Characters. No id of a refill is longer; what was damaged may have any length. */
const maxRefillIdLength = 100;

/**
 * Finds which of these dead letters are of refills that need nobody: their claim is pending, so that `finishClaims`
 * credits it once the marker of the refill has expired, or the refill has been credited since. Reads twice at most.
 * @throws AppError `service_unavailable`
 */
export async function findCreditedAgain(
  { codes, ledger }: ClaimReads,
  letters: readonly DeadLetter[],
): Promise<CreditedAgain> {
  const ids = [...new Set(letters.filter(isPerhapsRefill).flatMap(listRefillIds))];
  if (ids.length === 0) return new Map();
  // In this order: a claim is settled after its refill has got its row.
  const claims = await codes.findPendingByRefill(ids);
  const rows = await callMongo(() => ledger.refillLogs.find({ _id: { $in: ids } }).toArray());
  return new Map([
    ...rows.map((row) => [row._id, sourceOf(row)] as const),
    ...claims.map(({ refillId, source }) => [refillId, source] as const),
  ]);
}

/** Returns where a refill came from that is credited again; null if an entry is none. */
export function sourceOfCreditedAgain(letter: DeadLetter, credited: CreditedAgain): RefillSource | null {
  if (!isPerhapsRefill(letter)) return null;
  const id = listRefillIds(letter).find((known) => credited.has(known));
  return id === undefined ? null : credited.get(id)!;
}

/** Returns where a refill came from, as its event says; null if that is unreadable. */
export const sourceOfEvent = ({ fields }: DeadLetter): RefillSource | null =>
  readSource(parseEvent(findValue(fields, 'event'))?.['source']);

const isPerhapsRefill = ({ isCounted, fields }: DeadLetter): boolean => !isCounted && fields[1] !== 'charge';

/** The id is a field of the entry and is also in its event; either may be damaged. */
const listRefillIds = ({ fields }: DeadLetter): string[] =>
  [findValue(fields, 'id'), parseEvent(findValue(fields, 'event'))?.['refillId']].filter(
    (id): id is string => typeof id === 'string' && id !== '' && id.length <= maxRefillIdLength,
  );
