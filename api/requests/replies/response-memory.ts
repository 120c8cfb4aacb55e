// decisions 0023, 0032
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '../../../shared/contract/errors.ts';
import type { BudgetShare, FairBudget } from '../../../shared/fairness/fair-budget.ts';
import type { AcquireMemory } from './incoming-results.ts';
import type { PendingReply } from './pending-reply.ts';

/** Responses smaller than this do not take memory from the budget. */
const minBudgetedBytes = 256 * 1024;
/** Callers that wait longer get an error and may retry. */
const maxWaitMs = 60_000;
/**
 * The maximum wait of responses that have already been billed. It is shorter than the five minutes for which their
 * worker keeps them.
 */
const maxPaidWaitMs = 4.5 * 60_000;

export interface ResponseMemoryOptions {
  readonly bytes: number;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** The HTTP response that needs the memory, if its caller is connected to this process. */
  readonly response: ServerResponse | null;
  /**
   * Whether the response is complete and has been billed. Such a response may wait longer, and an account may have any
   * number of such responses waiting.
   */
  readonly isPaid?: boolean;
  /** Called before waiting. Throws if the request would not be admitted. */
  readonly checkBeforeWaiting?: () => Promise<void>;
}

/**
 * Acquires memory for a response of this size, which is held until the caller has read it. Without this limit, slow
 * readers could use any amount of memory. Returns null if the response is too small for the budget.
 * @throws AppError `queue_full` if no memory becomes available in time; the signal's reason; errors from
 * `checkBeforeWaiting`
 */
export async function acquireResponseMemory(
  budget: FairBudget,
  accountId: string,
  { bytes, response, isPaid = false, ...options }: ResponseMemoryOptions,
): Promise<BudgetShare | null> {
  if (bytes < minBudgetedBytes) return null;
  const limits = isPaid ? paidLimits : { waitMs: maxWaitMs, createError: tooManyResponses };
  const share = await budget.acquire(accountId, bytes, { ...options, ...limits });
  if (response !== null) trackShare(response, budget, share);
  return share;
}

/** Returns the function that acquires memory for an offered result; undefined if that was done before dispatch. */
export function acquireWhenOffered(
  budget: FairBudget,
  { request, receiver: { response } }: PendingReply,
  bytes: number,
): AcquireMemory | undefined {
  if (response === undefined) return undefined;
  return (signal) =>
    acquireResponseMemory(budget, request.accountId, { bytes, signal, response, isPaid: true });
}

const tooManyResponses = (): AppError =>
  new AppError('queue_full', {
    message: 'Too many large responses are in progress. Read the pending responses, and try again shortly.',
  });

const paidLimits = {
  waitMs: maxPaidWaitMs,
  maxWaiting: Infinity,
  createError: () =>
    new AppError('queue_full', {
      message:
        'The response was generated and charged but could not be delivered, because too many large responses were not being read. Read them before you send more requests.',
      // OpenAI's clients would send the request again, and pay for it again.
      headers: { 'x-should-retry': 'false' },
    }),
};

interface HeldShare {
  readonly budget: FairBudget;
  readonly share: BudgetShare;
}

/** Shares held for the callers of each connection. */
const sharesOf = new WeakMap<Socket, readonly HeldShare[]>();

/** Records that a share is held until this response has been read. */
export function trackShare(
  { req: { socket } }: ServerResponse,
  budget: FairBudget,
  share: BudgetShare,
): void {
  sharesOf.set(socket, [...heldSharesOf(socket), { budget, share }]);
}

const heldSharesOf = (socket: Socket): HeldShare[] =>
  (sharesOf.get(socket) ?? []).filter(({ share }) => share.amount > 0);

/**
 * Finds the connections, among these slow ones, that hold memory while another account waits for some. For each budget,
 * returns only connections of the account that holds the most memory.
 */
export function findMemoryBlockers(slow: readonly Socket[]): readonly Socket[] {
  const contested = slow.flatMap((socket) =>
    heldSharesOf(socket)
      .filter(({ budget, share }) => budget.isContested(share.holder))
      .map(({ budget, share: { holder } }) => ({ socket, budget, holder })),
  );
  const largestHolder = new Map<FairBudget, string>();
  for (const { budget, holder } of contested) {
    if (budget.heldBy(holder) > budget.heldBy(largestHolder.get(budget) ?? ''))
      largestHolder.set(budget, holder);
  }
  return contested
    .filter(({ budget, holder }) => holder === largestHolder.get(budget))
    .map(({ socket }) => socket);
}
