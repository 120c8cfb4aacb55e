import type { ExecutionContext } from 'ava';
import { findReservations } from './observe.ts';
import type { TestAccount, TestStack } from './stack.ts';
import { waitFor } from './wait-for.ts';
import { watchRedis } from './watch-redis.ts';

/** Calls `leave` to disconnect callers, and waits until workers were notified to cancel all requests of `account`. */
export async function waitUntilCancelled(
  t: ExecutionContext,
  stack: TestStack,
  account: TestAccount,
  leave: () => Promise<unknown>,
): Promise<void> {
  const commands = await watchRedis(t, stack.env['REDIS_URL']!);
  const ids = await findReservations(stack, account.id);
  const isCancelled = (id: string): boolean =>
    commands.some(({ name, args }) => name === 'spublish' && args.includes('cancel') && args.includes(id));
  await leave();
  await waitFor('the workers to be notified', () => ids.every(isCancelled));
}
