// decision 0012
import { AppError } from '../contract/errors.ts';
import { maxBalanceNano } from '../encoding/money.ts';
import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';
import type { RefillEvent } from '../ledger/usage-event.ts';

const script = new LuaScript(new URL('./refill.lua', import.meta.url), [
  'account',
  'marker',
  'stream',
  'amount',
  'free',
  'cap',
  'event',
  'isCode',
  'accountId',
  'id',
]);

type RefillReply = [outcome: 'credited', amount: string] | [outcome: 'repeated' | 'capped' | 'unknown'];

export interface Refill {
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly event: RefillEvent;
}

/**
 * Credits an account once per refill id; a negative amount debits it.
 * @returns the nano-roubles that were credited, or taken; null if this refill id was credited before
 * @throws AppError `validation_failed` above the cap; `internal_error` if the account is not loaded
 */
export async function runRefill(redis: RedisClient, refill: Refill): Promise<bigint | null> {
  const { accountId, refillId } = refill.event;
  const reply = (await script.run(redis, {
    account: redisKeys.account(accountId),
    marker: redisKeys.refill(accountId, refillId),
    stream: redisKeys.ledgerStream(shardOf(accountId)),
    amount: refill.amountNano.toString(),
    free: refill.freeRequests,
    cap: maxBalanceNano.toString(),
    event: JSON.stringify(refill.event),
    isCode: refill.event.code === null ? 0 : 1,
    accountId,
    id: refillId,
  })) as RefillReply;
  switch (reply[0]) {
    case 'credited':
      return BigInt(reply[1]);
    case 'repeated':
      return null;
    case 'capped':
      throw new AppError('validation_failed', { message: 'A balance cannot exceed 9 000 000 roubles.' });
    case 'unknown':
      throw new AppError('internal_error', { message: `account ${accountId} is not loaded into Redis` });
    default:
      return reply satisfies never;
  }
}
