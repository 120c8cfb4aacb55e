import type { AskUnderWay, WorkUnit } from './embedding-work.ts';

/** Null where a call holds inputs of several requests. */
export function findUser(units: readonly WorkUnit[]): string | null {
  const asks = new Set(units.flatMap(({ claims }) => claims.map(({ ask }) => ask)));
  const [only] = asks;
  return asks.size === 1 ? only!.ask.user : null;
}

export function findAccounts(units: readonly WorkUnit[]): ReadonlySet<string> {
  return new Set(units.map(({ accountId }) => accountId));
}

/** Our own count of what each account has in a call. */
export function sumTokens(units: readonly WorkUnit[]): Map<string, number> {
  const tokensOf = new Map<string, number>();
  for (const { accountId, tokens } of units) tokensOf.set(accountId, (tokensOf.get(accountId) ?? 0) + tokens);
  return tokensOf;
}

/** Units of one request stand and fall together. A shared one goes with the first that still waits for it. */
export function groupByAsk(units: readonly WorkUnit[]): WorkUnit[][] {
  const groups = new Map<AskUnderWay, WorkUnit[]>();
  for (const unit of units) {
    const { ask } = unit.claims.find((claim) => claim.ask.isWaitingFor(claim.index))!;
    const group = groups.get(ask) ?? [];
    group.push(unit);
    groups.set(ask, group);
  }
  // Those of one account side by side: who sends many that are bad is found at the cost of one.
  const ofAccount = ([ask]: [AskUnderWay, WorkUnit[]]): string => ask.ask.accountId;
  const ordered = [...groups].sort((a, b) => (ofAccount(a) < ofAccount(b) ? -1 : 1));
  return ordered.map(([, group]) => group);
}

/** Aborts once nobody waits for any of the units any more, also of those who came to share them meanwhile. */
export async function abortWhenUnwanted(units: readonly WorkUnit[], stop: AbortController): Promise<void> {
  for (;;) {
    const awaited = new Set<AskUnderWay>();
    for (const unit of units) {
      if (!unit.isWanted) continue;
      for (const { ask } of unit.claims) if (ask.isAwaited) awaited.add(ask);
    }
    if (awaited.size === 0) break;
    await Promise.all([...awaited].map(({ whenUnawaited }) => whenUnawaited));
  }
  stop.abort(new Error('nobody waits for this call'));
}
