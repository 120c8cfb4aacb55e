import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../contract/errors.ts';
import { SingleFlight } from '../platform/storage/single-flight.ts';
import { LuaScript } from '../platform/redis/lua-script.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';
import type { AccountDocument, AccountStore } from './account-store.ts';
import type { JobSettings } from './job-settings.ts';
import { parseList, toBudgetFields, type Restrictions } from './account-settings.ts';
import { isBudgetInRedis, parseHotBudget } from './budget-periods.ts';
import { toStoredAccount } from './stored-account.ts';
import { unknownKey } from './unknown-key.ts';
import { addMissingRows } from '../ledger/missing-entries-store.ts';
import type { LedgerStore } from '../ledger/ledger-store.ts';
import { callMongo } from '../platform/storage/mongo-client.ts';
import { runRestore, toCopiedFields, type RestoreMode, type RestoreOutcome } from './restore-script.ts';

/** An account as stored in Redis: the source of truth for money in flight. */
export interface HotAccount extends JobSettings {
  readonly id: string;
  readonly keyHash: string;
  readonly userType: string;
  readonly createdAt: Date;
  readonly balanceNano: bigint;
  readonly reservedNano: bigint;
  readonly totalAddedNano: bigint;
  /** Remaining free requests, including those reserved by running requests. */
  readonly freeRequests: number;
  /** How many rows the account's refill log has. */
  readonly refills: number;
  readonly requestsPerMinute: number;
  readonly banned: boolean;
  readonly lastUsedAt: Date | null;
  readonly restrictions: Restrictions;
}

/** What is checked before any operation of a key. */
export interface KeyAccess {
  /** Milliseconds since 1970; null for never. */
  readonly expiresAtMs: number | null;
  /** The addresses that may use the key, as `writeAddressRanges` writes them; null for all. */
  readonly addresses: string | null;
}

/** An account's requests of the last hour and their cost. */
export interface LastHourOfUse {
  readonly requests: number;
  readonly costNano: bigint;
}

const updateScript = new LuaScript(new URL('./update-account.lua', import.meta.url), ['account'], {
  itemNames: ['field', 'value'],
});

/** Whether both documents have the same key, limits, ban and settings. */
function hasSameSettings(one: AccountDocument, other: AccountDocument): boolean {
  const [a, b] = [one, other].map((account) =>
    JSON.stringify({ ...toCopiedFields(account), ...toBudgetFields(account) }),
  );
  return a === b;
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
  'exp',
  'adt',
  'mod',
  'omod',
  'tpm',
  'low',
  'bud',
  'obud',
] as const;

/** How long to wait before checking a recovering shard again, and how many checks to make before giving up. */
const restoreRetryMs = 100;
const restoreAttempts = 40;

export interface HotAccountOptions {
  /** How many stream entries one execution of the restore script scans. */
  readonly entriesPerRun?: number;
  /** How long a caller waits for one load. */
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
    this.#loading = new SingleFlight('account load', maxLoadMs);
    this.#adopting = new SingleFlight('account lookup', maxLoadMs);
  }

  /** @throws AppError `invalid_api_key` if MongoDB has no such account either */
  async get(accountId: string): Promise<HotAccount> {
    const found = await this.#read(accountId);
    if (found !== null) return found;
    await this.load(accountId);
    const loaded = await this.#read(accountId);
    if (loaded === null)
      throw new AppError('service_unavailable', { message: `account ${accountId} could not be loaded` });
    return loaded;
  }

  /**
   * Reads accounts as they are in Redis, in one pipeline, and those that are not there as MongoDB has them. Loads none.
   * @param stored their documents
   */
  async readAll(stored: readonly AccountDocument[]): Promise<HotAccount[]> {
    const found = await Promise.all(stored.map(({ _id }) => this.#read(_id)));
    return found.map((account, i) => account ?? toStoredAccount(stored[i]!, Date.now()));
  }

  /** Requests that reached a model in the current minute and the 59 before it, and their cost. */
  async readRecentUse(accountId: string): Promise<LastHourOfUse> {
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
   * Loads an account from MongoDB into Redis if it is not there yet. Concurrent callers share one load.
   * @throws AppError `invalid_api_key` if there is no such account
   */
  async load(accountId: string): Promise<void> {
    await this.#loading.run(accountId, () => this.#restore(accountId, 'load'));
  }

  /** Replaces an account in Redis that is known to be older than its copy in MongoDB. */
  async reload(accountId: string): Promise<void> {
    await this.#restore(accountId, 'replace');
  }

  /** Returns the banned accounts among these. The lookups are sent in one pipeline. */
  async findBanned(accountIds: readonly string[]): Promise<ReadonlySet<string>> {
    const bans = await callRedis(() =>
      Promise.all(accountIds.map((id) => this.#redis.hget(redisKeys.account(id), 'ban'))),
    );
    return new Set(accountIds.filter((_, i) => bans[i] === '1'));
  }

  /** Changes the key of an account in Redis. Everything else is copied by `adopt`. */
  async setKey(accountId: string, keyHash: string): Promise<void> {
    await this.#change(accountId, [{ field: 'key', value: keyHash }]);
  }

  /**
   * Reads when and from where the account's key may be used. Loads the account if it is not in Redis.
   * @throws AppError `invalid_api_key` if MongoDB has no such account either
   */
  async readAccess(accountId: string): Promise<KeyAccess> {
    const read = () => callRedis(() => this.#redis.hmget(redisKeys.account(accountId), 'bal', 'exp', 'adr'));
    let values = await read();
    if (values[0] === null) {
      await this.load(accountId);
      values = await read();
    }
    const [, expires, addresses] = values;
    return { expiresAtMs: expires ? Number(expires) : null, addresses: addresses ?? null };
  }

  /**
   * Copies the key, limits, ban and settings of an account from MongoDB to Redis. MongoDB is changed first and may change
   * again during the copy, so this rereads until MongoDB has what was written.
   * @param written the state last written to Redis
   * @returns the account; null if there is none
   */
  async adopt(accountId: string, written: AccountDocument | null = null): Promise<AccountDocument | null> {
    let known = written;
    for (let attempt = 1; attempt <= restoreAttempts; attempt++) {
      const account = await this.#accounts.findById(accountId);
      if (account === null || (known !== null && hasSameSettings(account, known))) return account;
      await this.#copy(account);
      known = account;
    }
    return known;
  }

  async #copy(account: AccountDocument): Promise<void> {
    const { _id: accountId, budget, ownerBudget } = account;
    const changes = Object.entries(toCopiedFields(account)).map(([field, value]) => ({ field, value }));
    const [current, currentOwners] = await this.#change(accountId, changes);
    if (isBudgetInRedis(current, budget) && isBudgetInRedis(currentOwners, ownerBudget)) return;
    await this.#restore(accountId, 'budgets');
  }

  /** @returns the account's budgets as stored in Redis; undefined if it is not loaded */
  async #change(
    accountId: string,
    changes: readonly { readonly field: string; readonly value: string }[],
  ): Promise<(string | null)[]> {
    const account = redisKeys.account(accountId);
    return (await callRedis(() => updateScript.run(this.#redis, { account }, changes))) as (string | null)[];
  }

  /** Like `adopt`, but shared by all concurrent callers. Each gets a state that was read after its own call. */
  async adoptShared(accountId: string): Promise<AccountDocument | null> {
    return await this.#adopting.runNext(accountId, () => this.adopt(accountId));
  }

  async #restore(accountId: string, mode: RestoreMode): Promise<void> {
    for (let attempt = 1; attempt <= restoreAttempts; attempt++) {
      const { outcome, account } = await this.#tryToRestore(accountId, mode);
      // Replacing an account in Redis keeps its key, limits, ban and settings, so all of them are copied.
      if (outcome === 'restored' && mode !== 'budgets')
        await this.adopt(accountId, mode === 'replace' ? null : account);
      if (outcome === 'restored' || outcome === 'present') return;
      if (outcome === 'recovering') await delay(restoreRetryMs);
    }
    throw new AppError('service_unavailable', { message: `account ${accountId} could not be loaded` });
  }

  async #tryToRestore(
    accountId: string,
    mode: RestoreMode,
  ): Promise<{ readonly outcome: RestoreOutcome; readonly account: AccountDocument }> {
    const shard = shardOf(accountId);
    const trimmed = (await callRedis(() => this.#redis.get(redisKeys.ledgerTrimmed(shard)))) ?? '';
    const account = await this.#accounts.findById(accountId, true);
    if (account === null) throw unknownKey();
    if (await callMongo(() => addMissingRows(this.#redis, this.#ledger, account)))
      return { outcome: 'stale', account };
    const checkpoint = await callMongo(() => this.#ledger.readCheckpoint(shard));
    const request = { account, trimmed, checkpoint, mode, entriesPerRun: this.#entriesPerRun };
    return { outcome: await callRedis(() => runRestore(this.#redis, request)), account };
  }

  async #read(accountId: string): Promise<HotAccount | null> {
    const values = await callRedis(() => this.#redis.hmget(redisKeys.account(accountId), ...fields));
    const [key, type, created, balance, reserved, added, free, codes, rpm, mqj, wgt, ban, last, ...settings] =
      values;
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
      refills: Number(codes ?? '0'),
      requestsPerMinute: Number(rpm),
      maxQueuedJobs: Number(mqj),
      weight: Number(wgt),
      banned: ban === '1',
      lastUsedAt: last ? new Date(Number(last)) : null,
      restrictions: await this.#toRestrictions(accountId, settings),
    };
  }

  async #toRestrictions(
    accountId: string,
    [expires, addresses, models, ownerModels, tokens, low, budget, ownerBudget]: readonly (string | null)[],
  ): Promise<Restrictions> {
    const hasBudget = typeof budget === 'string' || typeof ownerBudget === 'string';
    const lines = hasBudget
      ? await callRedis(() => this.#redis.hget(redisKeys.jobsHeld(accountId), 'lines'))
      : null;
    const linesNano = BigInt(lines ?? '0');
    return {
      budget: parseHotBudget(budget, linesNano, Date.now()),
      ownerBudget: parseHotBudget(ownerBudget, linesNano, Date.now()),
      models: parseList(models),
      ownerModels: parseList(ownerModels),
      addresses: parseList(addresses),
      expiresAt: expires ? new Date(Number(expires)) : null,
      tokensPerMinute: tokens ? Number(tokens) : null,
      lowBalanceNano: low ? BigInt(low) : null,
    };
  }
}
