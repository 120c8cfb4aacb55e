import { callClasses, type CallClass } from '../../shared/work/queue/call-class.ts';
import type { InputClaim, PendingInput, PendingRequest } from './embedding-work.ts';

/**
 * Thrown instead of making a call if all callers have disconnected before a slot is granted or a failed call is
 * retried.
 */
export class NobodyWaiting extends Error {
  override readonly name = 'NobodyWaiting';
}

/** Returns the end user of the request that the inputs belong to; null if they belong to several requests. */
export function findUser(inputs: readonly PendingInput[]): string | null {
  let only: PendingRequest | null = null;
  for (const { claims } of inputs) {
    for (const { request } of claims) {
      if (only !== null && request !== only) return null;
      only = request;
    }
  }
  return only?.task.user ?? null;
}

export function findAccounts(inputs: readonly PendingInput[]): ReadonlySet<string> {
  return new Set(inputs.map(({ accountId }) => accountId));
}

/** Our own count of each account's tokens in a call. */
export function sumTokens(inputs: readonly PendingInput[]): Map<string, number> {
  const tokensOf = new Map<string, number>();
  for (const { accountId, tokens } of inputs)
    tokensOf.set(accountId, (tokensOf.get(accountId) ?? 0) + tokens);
  return tokensOf;
}

/** Returns the earliest class of the inputs that are still needed, in which calls with them are made. */
export function findCallClass(inputs: readonly PendingInput[]): CallClass {
  const classes = new Set<CallClass>();
  for (const input of inputs)
    if (!classes.has(input.callClass) && input.isNeeded) classes.add(input.callClass);
  return callClasses.find((callClass) => classes.has(callClass)) ?? 'interactive';
}

/**
 * Groups inputs by line, because the inputs of one line succeed or fail together; most requests are one line. An input
 * shared by several lines goes into the group of the first that is still waiting for it. Inputs that no line is waiting
 * for are left out.
 */
export function groupByLine(inputs: readonly PendingInput[]): PendingInput[][] {
  const groups = new LineMap<PendingInput[]>();
  // Keep the lines of one account together, so that the bisection finds an account with many bad lines in as few calls
  // as an account with one.
  const byAccount = new Map<string, PendingInput[][]>();
  for (const input of inputs) {
    const claim = input.claims.find(({ request, index }) => request.isWaitingFor(index));
    if (!input.isNeeded || claim === undefined) continue;
    const known = groups.get(claim);
    if (known !== undefined) {
      known.push(input);
      continue;
    }
    const group = [input];
    groups.set(claim, group);
    const ofAccount = byAccount.get(input.accountId);
    if (ofAccount === undefined) byAccount.set(input.accountId, [group]);
    else ofAccount.push(group);
  }
  return [...byAccount].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, ofAccount]) => ofAccount);
}

/** Values by line, over several requests. */
export class LineMap<T> {
  readonly #byRequest = new Map<PendingRequest, Map<number, T>>();

  get({ request, index }: InputClaim): T | undefined {
    return this.#byRequest.get(request)?.get(request.lineOf(index));
  }

  set({ request, index }: InputClaim, value: T): void {
    let byLine = this.#byRequest.get(request);
    if (byLine === undefined) {
      byLine = new Map();
      this.#byRequest.set(request, byLine);
    }
    byLine.set(request.lineOf(index), value);
  }

  *values(): Generator<T> {
    for (const byLine of this.#byRequest.values()) yield* byLine.values();
  }
}

/**
 * Aborts `stop` once no request waits for any of the inputs, including requests that started to share them during the
 * call.
 */
export async function abortWhenAbandoned(
  inputs: readonly PendingInput[],
  stop: AbortController,
): Promise<void> {
  for (;;) {
    const waitingRequests = new Set<PendingRequest>();
    for (const input of inputs) {
      if (!input.isNeeded) continue;
      for (const { request } of input.claims) if (request.isAwaited) waitingRequests.add(request);
    }
    if (waitingRequests.size === 0) break;
    await Promise.all([...waitingRequests].map(({ whenNobodyWaits }) => whenNobodyWaits));
  }
  stop.abort(new NobodyWaiting());
}
