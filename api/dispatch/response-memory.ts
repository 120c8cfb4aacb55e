import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { AcquireMemory } from './incoming-results.ts';
import type { Waiter } from './waiter.ts';

/** Smaller responses are not worth counting. */
const countedFromBytes = 256 * 1024;
/** A caller that waits longer is told to come back. */
const longestWaitMs = 60_000;
/** Where the response is paid for and lies in its worker, which keeps it for five minutes. */
const longestPaidWaitMs = 4.5 * 60_000;

export interface ResponseMemoryOptions {
  readonly bytes: number;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
  /** The response that the memory is for, where its caller is on this process's connection. */
  readonly response: ServerResponse | null;
  /** Whether the response is made already, and paid for: it waits for longer, and however many of its account do. */
  readonly isPaid?: boolean;
  /** Throws where the request would not be admitted; asked before it waits. */
  readonly checkBeforeWaiting?: () => Promise<void>;
}

/**
 * Waits until the process has memory for a response of this size, from before it is asked for until its caller has read
 * it: callers who read slowly would otherwise hold any amount. Null where it is too small to count.
 * @throws AppError `queue_full` when there is none in time; the signal's reason; what `checkBeforeWaiting` throws
 */
export async function acquireResponseMemory(
  budget: FairBudget,
  accountId: string,
  { bytes, response, isPaid = false, ...options }: ResponseMemoryOptions,
): Promise<BudgetShare | null> {
  if (bytes < countedFromBytes) return null;
  const limits = isPaid ? paidLimits : { waitMs: longestWaitMs, refuse: refuseResponse };
  const share = await budget.acquire(accountId, bytes, { ...options, ...limits });
  if (response !== null) noteShare(response, budget, share);
  return share;
}

/** How a request whose result is offered comes by its memory; undefined where it did so before it was dispatched. */
export function acquireWhenOffered(
  budget: FairBudget,
  { request, receiver: { response } }: Waiter,
  bytes: number,
): AcquireMemory | undefined {
  if (response === undefined) return undefined;
  return (signal) =>
    acquireResponseMemory(budget, request.accountId, { bytes, signal, response, isPaid: true });
}

const refuseResponse = (): AppError =>
  new AppError('queue_full', {
    message: 'Too many large answers are under way. Read those that are, and try again shortly.',
  });

const paidLimits = {
  waitMs: longestPaidWaitMs,
  maxWaiting: Infinity,
  refuse: () =>
    new AppError('queue_full', {
      message:
        'The answer was made, and is charged, but could not be given: too many large answers were not read meanwhile. Read them before you ask for more.',
    }),
};

interface HeldShare {
  readonly budget: FairBudget;
  readonly share: BudgetShare;
}

/** What is held for the callers of each connection. */
const sharesOf = new WeakMap<Socket, readonly HeldShare[]>();

/** The share is held until this response has been read. */
export function noteShare({ req: { socket } }: ServerResponse, budget: FairBudget, share: BudgetShare): void {
  sharesOf.set(socket, [...listShares(socket), { budget, share }]);
}

const listShares = (socket: Socket): HeldShare[] =>
  (sharesOf.get(socket) ?? []).filter(({ share }) => share.amount > 0);

/**
 * Picks, among connections whose callers take nothing or little, those that hold memory that another account waits for:
 * for each budget all of the account that holds most, and of no other until that one has given its memory back.
 */
export function findContested(slow: readonly Socket[]): readonly Socket[] {
  const contested = slow.flatMap((socket) =>
    listShares(socket)
      .filter(({ budget, share }) => budget.isContested(share.holder))
      .map(({ budget, share: { holder } }) => ({ socket, budget, holder })),
  );
  const most = new Map<FairBudget, string>();
  for (const { budget, holder } of contested) {
    if (budget.heldBy(holder) > budget.heldBy(most.get(budget) ?? '')) most.set(budget, holder);
  }
  return contested.filter(({ budget, holder }) => holder === most.get(budget)).map(({ socket }) => socket);
}
