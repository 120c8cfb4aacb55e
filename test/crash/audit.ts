import { setTimeout as delay } from 'node:timers/promises';
import { verifyLedger as verify, type VerifyDeps } from '../../shared/admin/verify/verify-ledger.ts';
import type { LedgerDocument } from '../../shared/ledger/ledger-store.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { waitFor } from '../support/wait-for.ts';
import type { Receipt } from './paid-load.ts';
import type { ProcessStack } from './process-stack.ts';

/** Audits the charges and balances of a stack from outside its processes. */

/** Time for a dead ledger reader's lease to expire and for another to take over, perhaps after an outage. */
const ledgerTimeoutMs = 30_000;
const pollMs = 100;

const shards = Array.from({ length: shardCount }, (_, shard) => shard);

/**
 * Checks that each receipt has exactly one ledger entry with its amount. Waits for entries that have not reached
 * MongoDB yet.
 */
export async function checkReceipts(
  { ledger }: Pick<ProcessStack, 'ledger'>,
  receipts: readonly Receipt[],
): Promise<string[]> {
  const ids = receipts.map(({ requestId }) => requestId);
  const problems: string[] = [];
  const entries = await waitForEntries(ledger, ids);
  for (const { requestId, accountId, costNano, free } of receipts) {
    const entry = entries.get(requestId);
    if (entry === undefined) {
      problems.push(`${requestId} cost ${costNano} and is not in the ledger`);
      continue;
    }
    const expected = { accountId, amountNano: -costNano, freeRequests: free ? -1 : 0 };
    const found = {
      accountId: entry.accountId,
      amountNano: entry.amountNano,
      freeRequests: entry.freeRequests,
    };
    if (describe(expected) !== describe(found))
      problems.push(
        `${requestId}: its caller was billed ${describe(expected)}, the ledger has ${describe(found)}`,
      );
  }
  return problems;
}

const describe = (value: object): string =>
  Object.entries(value)
    .map(([name, field]) => `${name} ${String(field)}`)
    .join(', ');

/** Returns the entries found within the time that the ledger may take after a process dies. Some may be missing. */
async function waitForEntries(
  ledger: ProcessStack['ledger'],
  ids: readonly string[],
): Promise<ReadonlyMap<string, LedgerDocument>> {
  const deadlineMs = performance.now() + ledgerTimeoutMs;
  for (;;) {
    // If the killed process was MongoDB, nothing is found until it is back.
    const found = await ledger.findEntries(ids).catch(() => []);
    if (found.length === ids.length || performance.now() > deadlineMs)
      return new Map(found.map((entry) => [entry._id, entry]));
    await delay(pollMs);
  }
}

/** Resolves when all settled charges are in MongoDB and no reservations remain. */
export async function waitUntilQuiet(
  { redis }: Pick<ProcessStack, 'redis'>,
  timeoutMs: number,
): Promise<void> {
  const areEmpty = async (count: (shard: number) => Promise<number>): Promise<boolean> =>
    (await Promise.all(shards.map(count))).every((length) => length === 0);
  await waitFor('the ledger streams to be read', () =>
    areEmpty((shard) => redis.xlen(redisKeys.ledgerStream(shard))).catch(() => false),
  );
  await waitFor(
    'the last reservation to be settled or released',
    () => areEmpty((shard) => redis.hlen(redisKeys.reservations(shard))).catch(() => false),
    timeoutMs,
  );
}

/**
 * Checks the balances of a quiet stack: Redis and MongoDB must hold the refills minus the charges in the ledger, and no
 * balance may have been negative after any entry.
 * @param addedNano refilled amounts by account
 */
export async function checkBalances(
  { accounts, hotAccounts, ledger }: Pick<ProcessStack, 'accounts' | 'hotAccounts' | 'ledger'>,
  addedNano: ReadonlyMap<string, bigint>,
): Promise<string[]> {
  const problems: string[] = [];
  for (const [id, added] of addedNano) {
    const entries = await ledger.entries
      .find({ accountId: id })
      .sort({ streamMs: 1, streamSeq: 1 })
      .toArray();
    let balance = 0n;
    let refilled = 0n;
    for (const { amountNano } of entries) {
      balance += amountNano;
      if (amountNano > 0n) refilled += amountNano;
      if (balance < 0n) problems.push(`the balance of ${id} was ${balance}`);
    }
    const hot = await hotAccounts.get(id);
    const stored = await accounts.findById(id);
    const compare = (what: string, expected: bigint, found: bigint | undefined): void => {
      if (expected !== found) problems.push(`${what} of ${id} is ${found}, not ${expected}`);
    };
    compare('the sum of refills in the ledger', added, refilled);
    compare('the balance in Redis', balance, hot.balanceNano);
    compare('the balance in MongoDB', balance, stored?.balanceNano);
    compare('the reserved amount', 0n, hot.reservedNano);
  }
  return problems;
}

/**
 * Runs the product's own verification, like `admin ledger verify`, even while the stack is working. Repeats it until it
 * finds no differences or the time is over: the ledger may move too fast, a store may not be back yet, and orphans may
 * still be released. Real differences persist.
 */
export async function verifyLedger(stack: VerifyDeps, timeoutMs: number): Promise<string[]> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const isLast = performance.now() >= deadlineMs;
    try {
      const { differences } = await verify(stack, {
        account: null,
        releaseOrphans: false,
        onProgress: () => undefined,
      });
      if (differences.length === 0 || isLast)
        return differences.map((difference) => JSON.stringify(difference));
    } catch (error) {
      if (isLast) throw error;
    }
    await delay(pollMs);
  }
}
