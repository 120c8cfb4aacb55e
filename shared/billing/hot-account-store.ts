import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../contract/errors.ts';
import { SingleFlight } from '../runtime/single-flight.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys, shardOf } from '../redis/redis-keys.ts';
import type { AccountChange, AccountDocument, AccountStore } from '../accounts/account-store.ts';
import { defaultJobSettings, readJobSettings, type JobSettings } from '../accounts/job-settings.ts';
import { unknownKey } from '../accounts/unknown-key.ts';
import { sumForgotten } from '../ledger/forgotten-entries-store.ts';
import type { LedgerStore } from '../ledger/ledger-store.ts';
import { callMongo } from '../storage/mongo-client.ts';
import { runRestore, type RestoreOutcome } from './restore-script.ts';

/** An account as Redis holds it: the truth of money in flight. */
export interface HotAccount extends JobSettings {
  readonly id: string;
  readonly keyHash: string;
  readonly userType: string;
  readonly createdAt: Date;
  readonly balanceNano: bigint;
  readonly reservedNano: bigint;
  readonly totalAddedNano: bigint;
  /** Left to use; those held by requests under way still count. */
  readonly freeRequests: number;
  /** How many codes it has redeemed. */
  readonly redeemedCodes: number;
  readonly requestsPerMinute: number;
  readonly banned: boolean;
  readonly lastUsedAt: Date | null;
}

/** What an account's requests of the last hour came to. */
export interface RecentUse {
  readonly requests: number;
  readonly costNano: bigint;
}

/** Changes fields only where the account is loaded; elsewhere the next load brings them. */
const updateScript = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
`);

/** Whether the same key opens both, under the same limits and ban. */
function isGoverned(one: AccountDocument, other: AccountDocument): boolean {
  const [settings, otherSettings] = [readJobSettings(one), readJobSettings(other)];
  return (
    one.keyHash === other.keyHash &&
    one.requestsPerMinute === other.requestsPerMinute &&
    settings.maxQueuedJobs === otherSettings.maxQueuedJobs &&
    settings.weight === otherSettings.weight &&
    one.banned === other.banned
  );
}

const fields = [
  'key',
  'type',
  'created',
  'bal',
  'res',
  'added',
  'free',
  'codes',
  'rpm',
  'mqj',
  'wgt',
  'ban',
  'last',
] as const;

/** While a shard recovers it is looked at again after so long, and given up for the moment after so many looks. */
const restorePauseMs = 100;
const restoreAttempts = 40;

export interface HotAccountOptions {
  /** How many entries of the stream one run of a restore looks at. */
  readonly entriesPerRun?: number;
  /** How long one load is waited for by whoever needs the account. */
  readonly maxLoadMs?: number;
}

export class HotAccountStore {
  readonly #redis: RedisClient;
  readonly #accounts: AccountStore;
  readonly #ledger: LedgerStore;
  readonly #entriesPerRun: number | undefined;
  readonly #loading: SingleFlight<void>;
  readonly #adopting: SingleFlight<AccountDocument | null>;

  constructor(
    redis: RedisClient,
    accounts: AccountStore,
    ledger: LedgerStore,
    { entriesPerRun, maxLoadMs }: HotAccountOptions = {},
  ) {
    this.#redis = redis;
    this.#accounts = accounts;
    this.#ledger = ledger;
    this.#entriesPerRun = entriesPerRun;
    this.#loading = new SingleFlight('loading an account', maxLoadMs);
    this.#adopting = new SingleFlight('the look-up of an account', maxLoadMs);
  }

  /** @throws AppError `invalid_api_key` where there is no such account at rest either. */
  async get(accountId: string): Promise<HotAccount> {
    const found = await this.#read(accountId);
    if (found !== null) return found;
    await this.load(accountId);
    const loaded = await this.#read(accountId);
    if (loaded === null)
      throw new AppError('service_unavailable', { message: `account ${accountId} could not be loaded` });
    return loaded;
  }

  /** Requests that reached a model in the minute under way and the 59 before it, and what they cost. */
  async readRecentUse(accountId: string): Promise<RecentUse> {
    const slots = await callRedis(() => this.#redis.hvals(redisKeys.recentMinutes(accountId)));
    const oldest = Math.floor(Date.now() / 60_000) - 59;
    let requests = 0;
    let costNano = 0n;
    for (const slot of slots) {
      const [minute, count, cost] = slot.split(' ');
      if (Number(minute) < oldest) continue;
      requests += Number(count);
      costNano += BigInt(cost ?? '0');
    }
    return { requests, costNano };
  }

  /**
   * Brings an account from MongoDB into Redis, where it is not there. Requests that come meanwhile wait for the same.
   * @throws AppError `invalid_api_key` where there is no such account
   */
  async load(accountId: string): Promise<void> {
    await this.#loading.run(accountId, () => this.#restore(accountId, false));
  }

  /** Replaces an account in Redis that is known to be older than what MongoDB has of it. */
  async reload(accountId: string): Promise<void> {
    await this.#restore(accountId, true);
  }

  /** Which of the accounts are banned. The look-ups leave in one pipeline. */
  async findBanned(accountIds: readonly string[]): Promise<ReadonlySet<string>> {
    const bans = await callRedis(() =>
      Promise.all(accountIds.map((id) => this.#redis.hget(redisKeys.account(id), 'ban'))),
    );
    return new Set(accountIds.filter((_, i) => bans[i] === '1'));
  }

  async update(accountId: string, change: AccountChange & { readonly keyHash?: string }): Promise<void> {
    const args: string[] = [];
    if (change.keyHash !== undefined) args.push('key', change.keyHash);
    if (change.requestsPerMinute !== undefined) args.push('rpm', String(change.requestsPerMinute));
    if (change.maxQueuedJobs !== undefined) args.push('mqj', String(change.maxQueuedJobs));
    if (change.weight !== undefined) args.push('wgt', String(change.weight));
    if (change.banned !== undefined) args.push('ban', change.banned ? '1' : '0');
    await callRedis(() => updateScript.run(this.#redis, [redisKeys.account(accountId)], args));
  }

  /**
   * Brings the key, the limits and the ban that MongoDB has of an account to Redis. MongoDB is changed first, and may be
   * changed while this writes: it is read until what was written is what is there.
   * @param written what Redis was last given
   * @returns the account; null where there is none
   */
  async adopt(accountId: string, written: AccountDocument | null = null): Promise<AccountDocument | null> {
    let known = written;
    for (let attempt = 1; attempt <= restoreAttempts; attempt++) {
      const account = await this.#accounts.findById(accountId);
      if (account === null || (known !== null && isGoverned(account, known))) return account;
      await this.update(accountId, account);
      known = account;
    }
    return known;
  }

  /** As `adopt`, once for all who ask while it is under way; each of them is told what was there after it asked. */
  async adoptShared(accountId: string): Promise<AccountDocument | null> {
    return await this.#adopting.runNext(accountId, () => this.adopt(accountId));
  }

  async #restore(accountId: string, overwrites: boolean): Promise<void> {
    for (let attempt = 1; attempt <= restoreAttempts; attempt++) {
      const { outcome, account } = await this.#tryToRestore(accountId, overwrites);
      // One that was replaced kept what Redis had of key, limits and ban.
      if (outcome === 'restored') await this.adopt(accountId, overwrites ? null : account);
      if (outcome === 'restored' || outcome === 'present') return;
      if (outcome === 'recovering') await delay(restorePauseMs);
    }
    throw new AppError('service_unavailable', { message: `account ${accountId} could not be loaded` });
  }

  async #tryToRestore(
    accountId: string,
    overwrites: boolean,
  ): Promise<{ readonly outcome: RestoreOutcome; readonly account: AccountDocument }> {
    const shard = shardOf(accountId);
    const trimmed = (await callRedis(() => this.#redis.get(redisKeys.ledgerTrimmed(shard)))) ?? '';
    const account = await this.#accounts.findById(accountId, true);
    if (account === null) throw unknownKey();
    if (await callMongo(() => sumForgotten(this.#redis, this.#ledger, account)))
      return { outcome: 'stale', account };
    const checkpoint = await callMongo(() => this.#ledger.readCheckpoint(shard));
    const request = { account, trimmed, checkpoint, overwrites, entriesPerRun: this.#entriesPerRun };
    return { outcome: await callRedis(() => runRestore(this.#redis, request)), account };
  }

  async #read(accountId: string): Promise<HotAccount | null> {
    const values = await callRedis(() => this.#redis.hmget(redisKeys.account(accountId), ...fields));
    const [key, type, created, balance, reserved, added, free, codes, rpm, mqj, wgt, ban, last] = values;
    if (balance === null || balance === undefined) return null;
    return {
      id: accountId,
      keyHash: key ?? '',
      userType: type ?? '',
      createdAt: new Date(Number(created)),
      balanceNano: BigInt(balance),
      reservedNano: BigInt(reserved ?? '0'),
      totalAddedNano: BigInt(added ?? '0'),
      freeRequests: Number(free),
      redeemedCodes: Number(codes ?? '0'),
      requestsPerMinute: Number(rpm),
      // An earlier release loaded the account without them.
      maxQueuedJobs: Number(mqj ?? defaultJobSettings.maxQueuedJobs),
      weight: Number(wgt ?? defaultJobSettings.weight),
      banned: ban === '1',
      lastUsedAt: last ? new Date(Number(last)) : null,
    };
  }
}
