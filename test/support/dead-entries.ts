import { randomUUID } from 'node:crypto';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import type { TestStack } from './stack.ts';
import { waitFor } from './wait-for.ts';

/** The fields of a charge of 0.42 roubles. */
const chargeOf = (account: string, changes: Readonly<Record<string, string>>): string[] =>
  Object.entries({
    kind: 'charge',
    account,
    id: randomUUID(),
    cost: '420000000',
    shortfall: '0',
    free: '0',
    ordinal: '1',
    event: '{}',
    ...changes,
  }).flat();

/** Writes a charge of 0.42 roubles to the ledger. @param changes that make it unreadable */
export const writeCharge = (
  { redis }: Pick<TestStack, 'redis'>,
  account: string,
  changes: Readonly<Record<string, string>>,
): Promise<unknown> =>
  redis.xadd(redisKeys.ledgerStream(shardOf(account)), '*', ...chargeOf(account, changes));

/** Writes charges that workers cannot read, and waits until they are set aside. */
export async function writeDeadCharges(
  stack: TestStack,
  account: string,
  changes: readonly Readonly<Record<string, string>>[],
): Promise<void> {
  const countDead = () => stack.redis.xlen(redisKeys.ledgerDead(shardOf(account)));
  const before = await countDead();
  for (const change of changes) await writeCharge(stack, account, change);
  await waitFor('the entries to be set aside', async () => (await countDead()) === before + changes.length);
}

/** Of an entry that is in no balance. */
export const uncounted = { ordinal: 'many' };
/** Of an entry whose event alone is unreadable. */
export const counted = { event: '{"v":9}' };
