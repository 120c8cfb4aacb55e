import { AppError } from '../contract/errors.ts';
import { callRedis, RedisScript, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import type { AccountDocument, AccountStore } from '../accounts/account-store.ts';

/** An account as Redis holds it: the truth of money in flight. */
export interface HotAccount {
  readonly id: string;
  readonly keyHash: string;
  readonly userType: string;
  readonly createdAt: Date;
  readonly balanceNano: bigint;
  readonly reservedNano: bigint;
  readonly totalAddedNano: bigint;
  /** Left to use; those held by requests under way still count. */
  readonly freeRequests: number;
  readonly requestsPerMinute: number;
  readonly banned: boolean;
  readonly lastUsedAt: Date | null;
}

/** Writes an account only where there is none: what is in flight is never overwritten from what is at rest. */
const loadScript = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
`);

/** Changes fields only where the account is loaded; elsewhere the next load brings them. */
const updateScript = new RedisScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV))
return 1
`);

const fields = ['key', 'type', 'created', 'bal', 'res', 'added', 'free', 'rpm', 'ban', 'last'] as const;

export class HotAccountStore {
  readonly #redis: RedisClient;
  readonly #accounts: AccountStore;

  constructor(redis: RedisClient, accounts: AccountStore) {
    this.#redis = redis;
    this.#accounts = accounts;
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

  /** Brings an account from MongoDB into Redis, where it is not there. */
  async load(accountId: string): Promise<void> {
    const account = await this.#accounts.findById(accountId);
    if (account === null) throw new AppError('invalid_api_key');
    await callRedis(() => loadScript.run(this.#redis, [redisKeys.account(accountId)], toFields(account)));
  }

  async update(
    accountId: string,
    change: { keyHash?: string; requestsPerMinute?: number; banned?: boolean },
  ): Promise<void> {
    const args: string[] = [];
    if (change.keyHash !== undefined) args.push('key', change.keyHash);
    if (change.requestsPerMinute !== undefined) args.push('rpm', String(change.requestsPerMinute));
    if (change.banned !== undefined) args.push('ban', change.banned ? '1' : '0');
    await callRedis(() => updateScript.run(this.#redis, [redisKeys.account(accountId)], args));
  }

  async #read(accountId: string): Promise<HotAccount | null> {
    const values = await callRedis(() => this.#redis.hmget(redisKeys.account(accountId), ...fields));
    const [key, type, created, balance, reserved, added, free, rpm, ban, last] = values;
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
      requestsPerMinute: Number(rpm),
      banned: ban === '1',
      lastUsedAt: last ? new Date(Number(last)) : null,
    };
  }
}

function toFields(account: AccountDocument): string[] {
  return Object.entries({
    key: account.keyHash,
    type: account.userType,
    created: String(account.createdAt.getTime()),
    bal: account.balanceNano.toString(),
    res: '0',
    added: account.totalAddedNano.toString(),
    free: String(account.freeRequests),
    fres: '0',
    rpm: String(account.requestsPerMinute),
    ban: account.banned ? '1' : '0',
    win: '0',
  }).flat();
}
