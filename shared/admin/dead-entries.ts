// decision 0062
import { AppError } from '../contract/errors.ts';
import { toRubNumber } from '../encoding/money.ts';
import { DeadLetters, type DeadLetter, type DeadLetterPlace } from '../ledger/dead-letters-store.ts';
import { findValue, parseEvent, parseStreamId } from '../ledger/usage-event.ts';
import { shardCount } from '../platform/redis/redis-keys.ts';
import { shorten } from '../platform/runtime/shorten.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';
import {
  findCreditedAgain,
  sourceOfCreditedAgain,
  sourceOfEvent,
  type CreditedAgain,
} from './credited-again.ts';
import { toDryRun } from './dry-run.ts';
import { toPage, type Page } from './page.ts';
import { showFields } from './show-fields.ts';

/** Entries of the ledger that no worker could read: its dead letters. */

type Deps = Pick<AdminDeps, 'redis' | 'codes' | 'ledger'>;

const action = 'ledger.discard';
/** Characters. What was damaged may have any length. */
const maxIdLength = 100;
/** Entries that are read at once if all are. */
const chunkSize = 100;

export const formatEntry = ({ shard, id }: DeadLetterPlace): string => `${shard}:${id}`;

/** Returns null if a text cannot be the name of an entry. */
export function readEntry(text: string): DeadLetterPlace | null {
  const [, shard, id] = /^(\d{1,2}):(\d{1,15}-\d{1,15})$/.exec(text) ?? [];
  return id === undefined || Number(shard) >= shardCount ? null : { shard: Number(shard), id };
}

/** What of an entry can be read. */
function describeEntry(letter: DeadLetter, creditedAgain: CreditedAgain) {
  const { fields, streamId, accountId, isCounted, reason } = letter;
  const { kind, amountNano, freeRequests } = readAmounts(letter);
  const event = parseEvent(findValue(fields, 'event'));
  const creditedSource = sourceOfCreditedAgain(letter, creditedAgain);
  const requestId = kind === 'charge' ? (findValue(fields, 'id') ?? event?.['requestId']) : null;
  return {
    entry: formatEntry(letter),
    stream_id: streamId,
    written_at: toMoment(streamId),
    dead_since: toMoment(letter.id),
    account: shortenId(accountId),
    request_id: shortenId(requestId),
    model: shortenId(event?.['model']),
    kind,
    source: creditedSource ?? (kind === 'refill' ? sourceOfEvent(letter) : null),
    counted: isCounted,
    is_credited_again: creditedSource !== null,
    reason,
    amount: amountNano === null ? null : toRubNumber(amountNano),
    free_requests: freeRequests,
    fields: showFields(fields),
  };
}
export type DeadEntry = ReturnType<typeof describeEntry>;

/** The amounts that an entry names; null for those that cannot be read. */
function readAmounts({ fields }: DeadLetter) {
  const [first, named] = fields;
  const kind = first === 'kind' && (named === 'charge' || named === 'refill') ? named : null;
  const read = (name: string): string | null => {
    const text = findValue(fields, name) ?? '';
    return /^-?\d{1,16}$/.test(text) && Number.isSafeInteger(Number(text)) ? text : null;
  };
  const amount = kind === null ? null : read(kind === 'charge' ? 'cost' : 'amount');
  const free = kind === null ? null : read('free');
  return {
    kind,
    amountNano: amount === null ? null : BigInt(amount),
    freeRequests: free === null ? null : Number(free),
  } as const;
}

const shortenId = (id: unknown): string | null =>
  typeof id === 'string' && id !== '' ? shorten(id, maxIdLength) : null;

/** An id of a damaged stream may be no time. */
function toMoment(streamId: string): string | null {
  const { ms } = parseStreamId(streamId);
  return Number.isInteger(ms) && ms <= 8.64e15 ? new Date(ms).toISOString() : null;
}

/** Lists the entries that could not be read, the latest first. */
export async function listDeadEntries(
  deps: Deps,
  { limit, after }: { readonly limit: number; readonly after: DeadLetterPlace | null },
): Promise<Page<DeadEntry>> {
  const page = toPage(await new DeadLetters(deps.redis).listLatest(limit + 1, after), limit, formatEntry);
  return { ...page, rows: await describeAll(deps, page.rows) };
}

/** Yields all entries, by shard, the oldest first. */
export async function* listAllDeadEntries(deps: Deps): AsyncGenerator<DeadEntry> {
  for await (const letters of readChunks(deps)) yield* await describeAll(deps, letters);
}

async function describeAll(deps: Deps, letters: readonly DeadLetter[]): Promise<DeadEntry[]> {
  const creditedAgain = await findCreditedAgain(deps, letters);
  return letters.map((letter) => describeEntry(letter, creditedAgain));
}

async function* readChunks({ redis }: Pick<Deps, 'redis'>): AsyncGenerator<readonly DeadLetter[]> {
  let chunk: DeadLetter[] = [];
  for await (const letter of new DeadLetters(redis).list()) {
    chunk.push(letter);
    if (chunk.length < chunkSize) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

/** Adds up what is not counted in any balance. Reads all entries, of which a shard has about a thousand at most. */
export async function sumDeadEntries(deps: Deps) {
  const sums = { entries: 0, uncounted: 0, unknown: 0, creditedAgain: 0, chargesNano: 0n, refillsNano: 0n };
  for await (const letters of readChunks(deps)) {
    const creditedAgain = await findCreditedAgain(deps, letters);
    sums.entries += letters.length;
    for (const letter of letters.filter(({ isCounted }) => !isCounted)) {
      if (sourceOfCreditedAgain(letter, creditedAgain) !== null) sums.creditedAgain += 1;
      else addUncounted(sums, letter);
    }
  }
  const { entries, uncounted, unknown, creditedAgain, chargesNano, refillsNano } = sums;
  return {
    entries,
    uncounted,
    credited_again: creditedAgain,
    unknown,
    charges: toRubNumber(chargesNano),
    refills: toRubNumber(refillsNano),
  };
}

function addUncounted(
  sums: { uncounted: number; unknown: number; chargesNano: bigint; refillsNano: bigint },
  letter: DeadLetter,
): void {
  sums.uncounted += 1;
  const { kind, amountNano } = readAmounts(letter);
  if (amountNano === null) sums.unknown += 1;
  else if (kind === 'charge') sums.chargesNano += amountNano;
  else sums.refillsNano += amountNano;
}

/** What a discard would lose. @throws AppError `not_found` */
export async function dryRunDiscardEntry(deps: Deps, place: DeadLetterPlace) {
  const letters = new DeadLetters(deps.redis);
  const letter = await findEntry(letters, place);
  const isCreditedAgain = sourceOfCreditedAgain(letter, await findCreditedAgain(deps, [letter])) !== null;
  const { kind } = readAmounts(letter);
  const counts = await Promise.all(Array.from({ length: shardCount }, (_, shard) => letters.count(shard)));
  return toDryRun({
    kind,
    counted: letter.isCounted,
    is_credited_again: isCreditedAgain,
    ...(letter.isCounted || isCreditedAgain ? nothing : findUncounted(letter)),
    entries_left: Math.max(0, counts.reduce((sum, count) => sum + count, 0) - 1),
  });
}

const nothing = { uncharged: 0, uncredited: 0, free_requests: 0 };

/** The part of an entry that would be lost: it is in no balance, and the gateway does not credit it again. */
function findUncounted(letter: DeadLetter) {
  const { kind, amountNano, freeRequests } = readAmounts(letter);
  const amount = amountNano === null ? null : toRubNumber(amountNano);
  return {
    uncharged: kind === 'refill' ? 0 : amount,
    uncredited: kind === 'charge' ? 0 : amount,
    free_requests: freeRequests,
  };
}

/**
 * Deletes an entry, the last record of it but for the audit log, which gets what is read of it and its fields. Of several operators, one discards it.
 * @returns what it was
 * @throws AppError `not_found`
 */
export async function discardEntry(
  deps: Deps,
  trail: AuditTrail,
  place: DeadLetterPlace,
): Promise<DeadEntry> {
  const letters = new DeadLetters(deps.redis);
  const letter = await findEntry(letters, place);
  const found = describeEntry(letter, await findCreditedAgain(deps, [letter]));
  const { entry, account, ...before } = found;
  await trail.run(
    {
      action,
      id: entry,
      before: { account, ...before },
      ...(account === null ? {} : { accountId: account }),
    },
    async () => {
      if (!(await letters.delete(place))) throw noSuchEntry(place);
    },
    () => ({ discarded: 1 }),
  );
  return found;
}

/** Deletes all entries whose amounts are counted. @returns how many these were */
export async function discardCounted(
  { redis }: Pick<Deps, 'redis'>,
  trail: AuditTrail,
): Promise<{ discarded: number }> {
  const letters = new DeadLetters(redis);
  return await trail.run(
    { action, id: 'counted' },
    async () => {
      let discarded = 0;
      for await (const letter of letters.list())
        if (letter.isCounted && (await letters.delete(letter))) discarded += 1;
      return { discarded };
    },
    (discarded) => discarded,
  );
}

async function findEntry(letters: DeadLetters, place: DeadLetterPlace): Promise<DeadLetter> {
  const letter = await letters.find(place);
  if (letter === null) throw noSuchEntry(place);
  return letter;
}

const noSuchEntry = (place: DeadLetterPlace): AppError =>
  new AppError('not_found', {
    message: `There is no entry ${formatEntry(place)} among those that could not be read. It may have been discarded.`,
  });
