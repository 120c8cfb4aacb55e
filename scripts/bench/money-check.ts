import { setTimeout as delay } from 'node:timers/promises';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { createRedis, type RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';
import { loadConfig } from '../../shared/config/config.ts';
import { createLogger } from '../../shared/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../../shared/storage/mongo-client.ts';
import { readRedisUse, type RedisUse } from './redis-clock.ts';

export interface MoneyResult {
  /** Charges that the run added to the ledger. */
  readonly charges: number;
  /** How far behind the ledger was at the last response. */
  readonly behindMs: number;
  /** Errors that were found. */
  readonly faults: readonly string[];
}

const timeoutMs = 60_000;
const pollMs = 25;

/** Checks that every response of a run has one charge in the ledger. */
export class MoneyCheck {
  readonly #redis: RedisClient;
  readonly #mongo: MongoConnection;
  readonly #ledger: LedgerStore;
  readonly #accountId: string;

  constructor(env: NodeJS.ProcessEnv, accountId: string) {
    const config = loadConfig(env);
    const log = createLogger('bench', 'silent');
    this.#redis = createRedis(config.redisUrl, 'commands', log);
    this.#mongo = openMongo(config.mongodbUrl, log);
    this.#ledger = new LedgerStore(this.#mongo.db);
    this.#accountId = accountId;
  }

  /** @param startedAt after the last request of the previous run and before the first of this one */
  async check(startedAt: Date, answers: number): Promise<MoneyResult> {
    const endedAtMs = performance.now();
    const faults: string[] = [];
    const shard = shardOf(this.#accountId);
    let remaining = await this.#redis.xlen(redisKeys.ledgerStream(shard));
    while (remaining > 0 && performance.now() - endedAtMs < timeoutMs) {
      await delay(pollMs);
      remaining = await this.#redis.xlen(redisKeys.ledgerStream(shard));
    }
    const behindMs = performance.now() - endedAtMs;
    if (remaining > 0)
      faults.push(`${remaining} ledger entries did not reach MongoDB within ${timeoutMs} ms`);
    const openReservations = await this.#redis.hlen(redisKeys.reservations(shard));
    if (openReservations > 0) faults.push(`${openReservations} reservations were never ended`);
    const filter = { accountId: this.#accountId, at: { $gte: startedAt }, kind: 'charge' as const };
    const charges = await this.#ledger.entries.countDocuments(filter);
    if (charges !== answers) faults.push(`${charges} charges in the ledger for ${answers} correct responses`);
    return { charges, behindMs, faults };
  }

  async readRedisUse(): Promise<RedisUse> {
    return await readRedisUse(this.#redis);
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    await this.#mongo.close();
  }
}
