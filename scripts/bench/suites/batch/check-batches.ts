import { LedgerStore } from '../../../../shared/ledger/ledger-store.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { sum } from '../../harness/statistics.ts';
import type { BatchClient, BatchView } from './batch-client.ts';
import type { BatchStack } from './batch-stack.ts';

const nanoPerRouble = 1e9;

/** The balance of an account, as Redis has it. */
export async function readBalanceNano({ redis }: BatchStack, accountId: string): Promise<bigint> {
  return BigInt((await redis.hget(redisKeys.account(accountId), 'bal')) ?? '0');
}

/** An account's batches that have ended, and its balance before them. */
export interface EndedBatches {
  readonly accountId: string;
  readonly client: BatchClient;
  readonly batches: readonly BatchView[];
  readonly balanceNano: bigint;
  readonly startedAt: Date;
}

/**
 * Checks that every line is in one of the files once, that the batches cost what was debited, and that the ledger says so.
 * @returns what is wrong
 */
export async function checkBatches(
  stack: BatchStack,
  lines: number,
  { accountId, client, batches, balanceNano, startedAt }: EndedBatches,
): Promise<string[]> {
  const faults: string[] = [];
  for (const batch of batches) {
    const { id, request_counts: counts, reserved } = batch;
    if (counts.completed + counts.failed !== lines || counts.total !== lines)
      faults.push(`${id} counts ${counts.completed} + ${counts.failed} of ${lines} lines`);
    if (reserved !== 0) faults.push(`${id} still reserves ${reserved}`);
    const found = await countIds(client, batch);
    if (found.size !== lines) faults.push(`${id} has ${found.size} of ${lines} lines in its files`);
    const twice = [...found.values()].filter((count) => count > 1).length;
    if (twice > 0) faults.push(`${id} has ${twice} lines in its files more than once`);
  }
  const debited = Number(balanceNano - (await readBalanceNano(stack, accountId))) / nanoPerRouble;
  const cost = sum(batches.map((batch) => batch.cost));
  if (!isEqual(debited, cost)) faults.push(`${debited} were debited for batches that cost ${cost}`);
  const { faults: behind } = await stack.money.checkEnded();
  faults.push(...behind);
  const entries = new LedgerStore(stack.db).entries.find({
    accountId,
    at: { $gte: startedAt },
    kind: 'charge',
  });
  let charged = 0n;
  for await (const { amountNano } of entries) charged += amountNano;
  const charges = Math.abs(Number(charged)) / nanoPerRouble;
  if (!isEqual(charges, cost)) faults.push(`the ledger has charges of ${charges} for a cost of ${cost}`);
  return faults;
}

/** Amounts are shown as numbers, whose sums are not exact. Nano-roubles are. */
const isEqual = (one: number, other: number): boolean =>
  Math.round(one * nanoPerRouble) === Math.round(other * nanoPerRouble);

async function countIds(client: BatchClient, batch: BatchView): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const file of [batch.output_file_id, batch.error_file_id]) {
    if (file === null) continue;
    for await (const id of client.readIds(file)) found.set(id, (found.get(id) ?? 0) + 1);
  }
  return found;
}
