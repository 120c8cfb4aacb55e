import { setTimeout as delay } from 'node:timers/promises';
import { verifyLedger as verify, type VerifyDeps } from '../../scripts/admin/verify/verify-ledger.ts';
import type { LedgerDocument } from '../../shared/ledger/ledger-store.ts';
import { redisKeys, shardCount } from '../../shared/redis/redis-keys.ts';
import { waitFor } from '../support/wait-for.ts';
import type { Receipt } from './paid-load.ts';
import type { ProcessStack } from './process-stack.ts';

/** What anybody can see from beside the stack: whether its money is right. */

/** A dead reader's lease runs out and another goes on, perhaps after an outage. */
const ledgerTimeoutMs = 30_000;
const pollMs = 100;

const shards = Array.from({ length: shardCount }, (_, shard) => shard);

/**
 * What is wrong with these receipts: each must be one entry of the ledger, with that amount. Waits for those that are
 * on their way to MongoDB.
 */
export async function checkReceipts(
  { ledger }: Pick<ProcessStack, 'ledger'>,
  receipts: readonly Receipt[],
): Promise<string[]> {
  const ids = receipts.map(({ requestId }) => requestId);
  const faults: string[] = [];
  const entries = await waitForEntries(ledger, ids);
  for (const { requestId, accountId, costNano, free } of receipts) {
    const entry = entries.get(requestId);
    if (entry === undefined) {
      faults.push(`${requestId} was paid ${costNano} and is not in the ledger`);
      continue;
    }
    const expected = { accountId, amountNano: -costNano, freeRequests: free ? -1 : 0 };
    const found = {
      accountId: entry.accountId,
      amountNano: entry.amountNano,
      freeRequests: entry.freeRequests,
    };
    if (describe(expected) !== describe(found))
      faults.push(
        `${requestId}: its caller was told ${describe(expected)}, the ledger has ${describe(found)}`,
      );
  }
  return faults;
}

const describe = (value: object): string =>
  Object.entries(value)
    .map(([name, field]) => `${name} ${String(field)}`)
    .join(', ');

/** All that are there within the time that the ledger may take after a death; who is missing is told by the caller. */
async function waitForEntries(
  ledger: ProcessStack['ledger'],
  ids: readonly string[],
): Promise<ReadonlyMap<string, LedgerDocument>> {
  const deadlineMs = performance.now() + ledgerTimeoutMs;
  for (;;) {
    // MongoDB may be the one that was killed: then nothing is found until it is back.
    const found = await ledger.findEntries(ids).catch(() => []);
    if (found.length === ids.length || performance.now() > deadlineMs)
      return new Map(found.map((entry) => [entry._id, entry]));
    await delay(pollMs);
  }
}

/** Resolves when everything settled is in MongoDB, and no reservation is left. */
export async function waitUntilQuiet(
  { redis }: Pick<ProcessStack, 'redis'>,
  timeoutMs: number,
): Promise<void> {
  const areEmpty = async (count: (shard: number) => Promise<number>): Promise<boolean> =>
    (await Promise.all(shards.map(count))).every((length) => length === 0);
  await waitFor('the streams to be read', () =>
    areEmpty((shard) => redis.xlen(redisKeys.ledgerStream(shard))).catch(() => false),
  );
  await waitFor(
    'the last reservation to end',
    () => areEmpty((shard) => redis.hlen(redisKeys.reservations(shard))).catch(() => false),
    timeoutMs,
  );
}

/**
 * What is wrong with the balances of a quiet stack: Redis and MongoDB must hold what was added less what the ledger
 * says was charged, and no balance may have been below zero at any entry.
 * @param addedNano what was refilled, by account
 */
export async function checkBalances(
  { accounts, hotAccounts, ledger }: Pick<ProcessStack, 'accounts' | 'hotAccounts' | 'ledger'>,
  addedNano: ReadonlyMap<string, bigint>,
): Promise<string[]> {
  const faults: string[] = [];
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
      if (balance < 0n) faults.push(`the balance of ${id} was ${balance}`);
    }
    const hot = await hotAccounts.get(id);
    const atRest = await accounts.findById(id);
    const compare = (what: string, expected: bigint, found: bigint | undefined): void => {
      if (expected !== found) faults.push(`${what} of ${id} is ${found}, not ${expected}`);
    };
    compare('what the ledger refilled', added, refilled);
    compare('the balance in Redis', balance, hot.balanceNano);
    compare('the balance in MongoDB', balance, atRest?.balanceNano);
    compare('what is reserved', 0n, hot.reservedNano);
  }
  return faults;
}

/**
 * What the product's own verification finds, as `admin ledger verify` runs it; it may run while the stack works. What is
 * wrong stays wrong: it is read again only where the ledger moved too fast or a store is not back yet, and for orphans
 * that may still be released in the time given.
 */
export async function verifyLedger(stack: VerifyDeps, patienceMs: number): Promise<string[]> {
  const deadlineMs = performance.now() + patienceMs;
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
