// decision 0012
import { AppError } from '../contract/errors.ts';
import { maxBalanceNano } from '../encoding/money.ts';
import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';
import { isRefillListed, type RefillEvent } from '../ledger/usage-event.ts';

const script = new LuaScript(new URL('./refill.lua', import.meta.url), [
  'account',
  'marker',
  'stream',
  'amount',
  'free',
  'cap',
  'event',
  'isListed',
  'accountId',
  'id',
]);

type RefillReply =
  | [outcome: 'credited', amount: string, free: string]
  | [outcome: 'repeated', marker: string]
  | [outcome: 'capped' | 'unknown'];

export interface Refill {
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly event: RefillEvent;
}

/** What a refill added to its account; less than requested if a debit was larger than what was available. */
export interface AppliedRefill {
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly event: RefillEvent;
  /** Whether an earlier call applied it. */
  readonly isRepeated: boolean;
}

/**
 * Credits an account once per refill id; a negative amount debits it.
 * @returns what was added, now or by the first call with this id; null if that is not known, or the refill is void
 * @throws AppError `validation_failed` above the cap; `internal_error` if the account is not loaded
 */
export async function applyRefill(redis: RedisClient, refill: Refill): Promise<AppliedRefill | null> {
  const { accountId, refillId } = refill.event;
  const reply = (await script.run(redis, {
    account: redisKeys.account(accountId),
    marker: redisKeys.refill(accountId, refillId),
    stream: redisKeys.ledgerStream(shardOf(accountId)),
    amount: refill.amountNano.toString(),
    free: refill.freeRequests,
    cap: maxBalanceNano.toString(),
    event: JSON.stringify(refill.event),
    isListed: isRefillListed(refill.event) ? 1 : 0,
    accountId,
    id: refillId,
  })) as RefillReply;
  switch (reply[0]) {
    case 'credited':
      return {
        amountNano: BigInt(reply[1]),
        freeRequests: Number(reply[2]),
        event: refill.event,
        isRepeated: false,
      };
    case 'repeated':
      return parseMarker(reply[1]);
    case 'capped':
      throw new AppError('validation_failed', { message: 'A balance cannot exceed 9 000 000 roubles.' });
    case 'unknown':
      throw new AppError('internal_error', { message: `account ${accountId} is not loaded into Redis` });
    default:
      return reply satisfies never;
  }
}

/**
 * Like `applyRefill`.
 * @returns the nano-roubles that were credited, or taken; null if this refill id was credited before
 */
export async function runRefill(redis: RedisClient, refill: Refill): Promise<bigint | null> {
  const applied = await applyRefill(redis, refill);
  return applied === null || applied.isRepeated ? null : applied.amountNano;
}

/** Finds a refill that was credited within the last week. @returns null if there is none, or it is void */
export async function findRecentRefill(
  redis: RedisClient,
  accountId: string,
  refillId: string,
): Promise<AppliedRefill | null> {
  const marker = await callRedis(() => redis.get(redisKeys.refill(accountId, refillId)));
  return marker === null ? null : parseMarker(marker);
}

/** Markers of earlier releases, and those of void refills, do not say what was credited. */
function parseMarker(marker: string): AppliedRefill | null {
  const [, amount, free, event] = /^(-?\d+) (-?\d+) (\{.*)$/s.exec(marker) ?? [];
  if (event === undefined) return null;
  return {
    amountNano: BigInt(amount!),
    freeRequests: Number(free),
    event: JSON.parse(event) as RefillEvent,
    isRepeated: true,
  };
}
