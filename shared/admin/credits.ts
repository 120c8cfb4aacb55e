// decision 0098
import { randomUUID } from 'node:crypto';
import { hashSecret } from '../accounts/credentials.ts';
import { applyRefill, findRecentRefill, type AppliedRefill } from '../accounts/refill-script.ts';
import { AppError } from '../contract/errors.ts';
import { toRubNumber } from '../encoding/money.ts';
import type { LedgerDocument } from '../ledger/ledger-store.ts';
import { createRefillEvent, type RefillEvent } from '../ledger/usage-event.ts';
import { callRedis } from '../platform/redis/redis-client.ts';
import { callMongo } from '../platform/storage/mongo-client.ts';
import type { AdminDeps } from './admin-deps.ts';
import type { AuditTrail } from './audit-trail.ts';

export interface NewCredit {
  /** Negative to take money back, at most what is available. */
  readonly amountNano: bigint;
  readonly freeRequests: number;
  /** The account's owner sees it. */
  readonly note: string | null;
  /** Makes the credit happen once, for ever; null for a credit that is not repeated. */
  readonly key: string | null;
}

export interface Credit {
  /** The id of its ledger entry. */
  readonly id: string;
  readonly accountId: string;
  /** What was added; less was taken than requested if the account had less. */
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly note: string | null;
  readonly at: Date;
  /** Whether an earlier call with the key made it. */
  readonly isReplay: boolean;
}

type Deps = Pick<AdminDeps, 'redis' | 'hotAccounts' | 'ledger'>;

/**
 * Credits an account. The id of a refill with a key is derived from the account and the key, so its ledger entry, which
 * is kept for ever, is what remembers the key. Until the entry is in MongoDB, Redis remembers it. If Redis loses its data
 * in between, the credit is lost with it; if it loses them later, a second entry with the same id is not counted.
 * @param accountId of an account that exists
 * @throws AppError `idempotency_conflict` if the key was used for another amount; `validation_failed` above the cap
 */
export async function creditAccount(
  deps: Deps,
  trail: AuditTrail,
  accountId: string,
  credit: NewCredit,
): Promise<Credit> {
  const id = credit.key === null ? randomUUID() : toRefillId(accountId, credit.key);
  const known = credit.key === null ? null : await findKnown(deps, accountId, id);
  // A repetition changes nothing, so it is not recorded. A conflict is, as a change that was rejected.
  if (known !== null && isSameCredit(known, credit)) return toReplay(accountId, id, credit, known);
  const before = await deps.hotAccounts.get(accountId);
  const { made } = await trail.run(
    { action: 'account.credit', id: accountId, before: describeBalance(before) },
    async () => ({
      made:
        known === null
          ? await apply(deps, trail.actor.token, accountId, id, credit)
          : toReplay(accountId, id, credit, known),
      after: await deps.hotAccounts.get(accountId),
    }),
    ({ made, after }) =>
      made.isReplay
        ? { replayed: true, credit: id }
        : {
            ...describeBalance(after),
            credit: id,
            amount: toRubNumber(made.amountNano),
            free_requests_added: made.freeRequests,
            note: made.note,
          },
  );
  return made;
}

/** Makes the credit that an account begins with, once for ever. Repeated calls have the same amounts. */
export async function creditNewAccount(
  deps: Deps,
  token: string,
  accountId: string,
  amounts: Pick<NewCredit, 'amountNano' | 'freeRequests'>,
): Promise<void> {
  const id = `create-${accountId}`;
  const credit = { ...amounts, note: null, key: id };
  const known = await findKnown(deps, accountId, id);
  if (known === null && (amounts.amountNano > 0n || amounts.freeRequests > 0))
    await apply(deps, token, accountId, id, credit);
}

/** Takes back the credit that an account began with. */
export async function takeBackNewCredit(
  deps: Deps,
  token: string,
  accountId: string,
  { amountNano, freeRequests }: Pick<NewCredit, 'amountNano' | 'freeRequests'>,
): Promise<void> {
  if (amountNano === 0n && freeRequests === 0) return;
  const credit = { amountNano: -amountNano, freeRequests: -freeRequests, note: null, key: null };
  await apply(deps, token, accountId, `undo-create-${accountId}`, credit);
}

const toRefillId = (accountId: string, key: string): string => `credit-${hashSecret(`${accountId}\n${key}`)}`;

const describeBalance = (account: { readonly balanceNano: bigint; readonly freeRequests: number }) => ({
  balance: toRubNumber(account.balanceNano),
  free_requests: account.freeRequests,
});

function createEvent(token: string, id: string, accountId: string, credit: NewCredit): RefillEvent {
  return {
    ...createRefillEvent(id, accountId, 'admin'),
    token,
    ...(credit.note === null ? {} : { note: credit.note }),
    ...(credit.key === null
      ? {}
      : { requestedNano: credit.amountNano.toString(), requestedFree: credit.freeRequests }),
  };
}

/** Of several calls with the same id at once, one makes the credit, and the others find it. */
async function apply(
  { redis }: Deps,
  token: string,
  accountId: string,
  id: string,
  credit: NewCredit,
): Promise<Credit> {
  const { amountNano, freeRequests } = credit;
  const event = createEvent(token, id, accountId, credit);
  const applied = await callRedis(() => applyRefill(redis, { amountNano, freeRequests, event }));
  if (applied === null) throw new Error(`The refill ${id} is void.`);
  const known = toKnown(applied);
  return applied.isRepeated
    ? toReplay(accountId, id, credit, known)
    : { ...toCredit(accountId, id, known), isReplay: false };
}

/** What is known of a credit that was made. */
interface KnownCredit {
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly note: string | null;
  readonly at: Date;
  readonly requestedNano: bigint;
  readonly requestedFree: number;
}

async function findKnown(
  { redis, ledger }: Deps,
  accountId: string,
  id: string,
): Promise<KnownCredit | null> {
  const recent = await findRecentRefill(redis, accountId, id);
  if (recent !== null) return toKnown(recent);
  const entry = await callMongo(() => ledger.entries.findOne({ _id: id }));
  return entry === null ? null : readEntry(entry);
}

const toKnown = ({ amountNano, freeRequests, event }: AppliedRefill): KnownCredit => ({
  amountNano,
  freeRequests,
  note: event.note ?? null,
  at: new Date(event.at),
  requestedNano: BigInt(event.requestedNano ?? amountNano),
  requestedFree: event.requestedFree ?? freeRequests,
});

const readEntry = (entry: LedgerDocument): KnownCredit => ({
  amountNano: entry.amountNano,
  freeRequests: entry.freeRequests,
  note: entry.note ?? null,
  at: entry.at,
  requestedNano: entry.requestedNano ?? entry.amountNano,
  requestedFree: entry.requestedFree ?? entry.freeRequests,
});

function toCredit(accountId: string, id: string, known: KnownCredit): Omit<Credit, 'isReplay'> {
  const { amountNano, freeRequests, note, at } = known;
  return { id, accountId, amountNano, freeRequests, note, at };
}

const isSameCredit = (known: KnownCredit, credit: NewCredit): boolean =>
  known.requestedNano === credit.amountNano && known.requestedFree === credit.freeRequests;

function toReplay(accountId: string, id: string, credit: NewCredit, known: KnownCredit): Credit {
  if (!isSameCredit(known, credit))
    throw new AppError('idempotency_conflict', {
      message:
        'This Idempotency-Key was already used for a credit of another amount to this account. Use a new key for each credit.',
    });
  return { ...toCredit(accountId, id, known), isReplay: true };
}
