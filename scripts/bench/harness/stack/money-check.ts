import { setTimeout as delay } from 'node:timers/promises';
import { LedgerStore } from '../../../../shared/ledger/ledger-store.ts';
import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import { sum } from '../statistics.ts';
import type { Stores } from './stores.ts';

export interface MoneyResult {
  /** Charges that the run added to the ledger. */
  readonly charges: number;
  /** How far behind the ledger was at the last response. */
  readonly behindMs: number;
  /** Errors that were found. */
  readonly faults: readonly string[];
}

const timeoutMs = 60_000;
/** Long enough for the end of an aborted request, and shorter than the wait before an orphaned reservation is released. */
const endTimeoutMs = 10_000;
const pollMs = 25;

/** Checks that every response of a run has one charge in the ledger of one of the accounts. */
export class MoneyCheck {
  readonly #redis: RedisClient;
  readonly #ledger: LedgerStore;
  readonly #accountIds: readonly string[];

  constructor({ redis, db }: Pick<Stores, 'redis' | 'db'>, accountIds: readonly string[]) {
    this.#redis = redis;
    this.#ledger = new LedgerStore(db);
    this.#accountIds = accountIds;
  }

  /** @param startedAt after the last request of the previous run and before the first of this one */
  async check(startedAt: Date, answers: number): Promise<MoneyResult> {
    const result = await this.#readCharges(startedAt, 0);
    if (result.charges === answers) return result;
    const fault = `${result.charges} charges in the ledger for ${answers} correct responses`;
    return { ...result, faults: [...result.faults, fault] };
  }

  /**
   * Like `check` after a run with aborted requests, which may or may not be charged.
   * @param endMs how long they may take to end after the run
   */
  async checkEnded(startedAt = new Date(), endMs = endTimeoutMs): Promise<MoneyResult> {
    return await this.#readCharges(startedAt, endMs);
  }

  /** @param endMs how long reservations may be held after the run */
  async #readCharges(startedAt: Date, endMs: number): Promise<MoneyResult> {
    const faults: string[] = [];
    const shards = [...new Set(this.#accountIds.map(shardOf))];
    const countAll = async (count: (shard: number) => Promise<number>): Promise<number> =>
      sum(await Promise.all(shards.map(count)));
    const reservations = () => countAll((shard) => this.#redis.hlen(redisKeys.reservations(shard)));
    const entries = () => countAll((shard) => this.#redis.xlen(redisKeys.ledgerStream(shard)));
    const openAtEnd = endMs === 0 ? null : await waitUntilZero(reservations, endMs);
    const endedAtMs = performance.now();
    const remaining = await waitUntilZero(entries, timeoutMs);
    const behindMs = performance.now() - endedAtMs;
    if (remaining > 0)
      faults.push(`${remaining} ledger entries did not reach MongoDB within ${timeoutMs} ms`);
    const open = openAtEnd ?? (await reservations());
    if (open > 0) faults.push(`${open} reservations were never ended`);
    const filter = {
      accountId: { $in: [...this.#accountIds] },
      at: { $gte: startedAt },
      kind: 'charge' as const,
    };
    const charges = await this.#ledger.entries.countDocuments(filter);
    return { charges, behindMs, faults };
  }
}

/** @returns the count: zero, or what it was after this time */
async function waitUntilZero(count: () => Promise<number>, forMs: number): Promise<number> {
  const untilMs = performance.now() + forMs;
  let current = await count();
  while (current > 0 && performance.now() < untilMs) {
    await delay(pollMs);
    current = await count();
  }
  return current;
}
