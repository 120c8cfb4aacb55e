import type { PendingRequest, PendingInput } from './embedding-work.ts';

/**
 * Thrown instead of making a call if all callers have disconnected before a slot is granted or a failed call is
 * retried.
 */
export class NobodyWaiting extends Error {
  override readonly name = 'NobodyWaiting';
}

/** Returns the end user of the request that the inputs belong to; null if they belong to several requests. */
export function findUser(inputs: readonly PendingInput[]): string | null {
  const requests = new Set(inputs.flatMap(({ claims }) => claims.map(({ request }) => request)));
  const [only] = requests;
  return requests.size === 1 ? only!.task.user : null;
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

/**
 * Groups inputs by request, because the inputs of one request succeed or fail together. An input shared by several
 * requests goes into the group of the first request that is still waiting for it. Inputs that no request is waiting for
 * are left out.
 */
export function groupByRequest(inputs: readonly PendingInput[]): PendingInput[][] {
  const groups = new Map<PendingRequest, PendingInput[]>();
  for (const input of inputs) {
    if (!input.isNeeded) continue;
    const { request } = input.claims.find((claim) => claim.request.isWaitingFor(claim.index))!;
    const group = groups.get(request) ?? [];
    group.push(input);
    groups.set(request, group);
  }
  // Keep the requests of one account together, so that the bisection finds an account with many bad requests in as few
  // calls as an account with one.
  const ofAccount = ([request]: [PendingRequest, PendingInput[]]): string => request.task.accountId;
  const ordered = [...groups].sort((a, b) => (ofAccount(a) < ofAccount(b) ? -1 : 1));
  return ordered.map(([, group]) => group);
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
