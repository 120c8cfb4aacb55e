import { inspect } from 'node:util';
import type { Difference } from '../../shared/admin/verify/check-account.ts';
import { verifyLedger } from '../../shared/admin/verify/verify-ledger.ts';
import type { ApiAccount } from '../../api/contract/web-accounts.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import type { WebUser } from '../../shared/account-area/web-models.ts';
import type { ErrorBody } from './call-api.ts';
import { changeSettings } from './change-settings.ts';
import { startStack, type StackOptions, type TestAccount, type TestStack } from './stack.ts';
import { waitFor } from './wait-for.ts';
import { createWebUser, webStoresOf, type WebClient, type WebClientOptions } from './web-client.ts';

/** A response of the account area, read to its end; `body` is null if it is empty. */
export interface WebResponse<T> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

export async function callWeb<T = ErrorBody>(
  client: WebClient,
  method: string,
  path: string,
  body?: unknown,
): Promise<WebResponse<T>> {
  const { status, headers, ...response } = await readText(client.request(method, path, body));
  return { status, headers, body: (response.text === '' ? null : JSON.parse(response.text)) as T };
}

async function readText(request: Promise<Response>) {
  const response = await request;
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** A stack that trusts its proxy, so that each test user can have a different client address. */
export async function startWebStack({ env, ...options }: StackOptions = {}): Promise<TestStack> {
  const stack = await startStack({ ...options, env: { WEB_CAPTCHA: 'off', TRUST_PROXY: 'on', ...env } });
  await createIndexes(stack);
  return stack;
}

/** Creates the indexes, as a worker does at startup. Retries, as MongoDB may time out on a busy machine. */
async function createIndexes(stack: TestStack): Promise<void> {
  let failure: unknown = null;
  await waitFor(
    () => `the indexes of the account area: ${inspect(failure)}`,
    async () => {
      try {
        await webStoresOf(stack).createIndexes();
        return true;
      } catch (error) {
        failure = error;
        return false;
      }
    },
  );
}

let clients = 0;

/** Creates a user with an address in a /24 of its own, so that it shares no network limit. Needs TRUST_PROXY=on. */
export async function createSeparateUser(
  stack: TestStack,
  { address, ...options }: WebClientOptions & { readonly address?: string } = {},
): Promise<{ client: WebClient; user: WebUser; address: string }> {
  clients += 1;
  const ownAddress = address ?? `100.${64 + Math.floor(clients / 250)}.${clients % 250}.1`;
  const created = await createWebUser(stack, `user-${clients}@example.com`, {
    ...options,
    headers: { 'x-forwarded-for': ownAddress },
  });
  return { ...created, address: ownAddress };
}

export async function linkAccount(
  client: WebClient,
  { apiKey }: Pick<TestAccount, 'apiKey'>,
  label?: string,
): Promise<ApiAccount> {
  const body = { api_key: apiKey, ...(label === undefined ? {} : { label }) };
  const response = await callWeb<ApiAccount>(client, 'POST', '/api-accounts/link', body);
  if (response.status !== 201) throw new Error(`${response.status}: ${JSON.stringify(response.body)}`);
  return response.body;
}

export async function banAccount(stack: TestStack, accountId: string): Promise<void> {
  await changeSettings(stack, accountId, { banned: true, banReason: 'test' });
}

export async function createRefillCode(
  { mongo }: TestStack,
  balance = '10',
  freeRequests = 0,
): Promise<string> {
  const code = { balanceNano: parseRub(balance)!, freeRequests, expiresAt: null };
  return (await new RefillCodeStore(mongo.db).create(1, code))[0]!;
}

/** The findings of `admin ledger verify`, once the ledger is fully applied. */
export async function findLedgerDifferences({ redis, mongo, config }: TestStack): Promise<Difference[]> {
  await waitFor('the ledger to be fully applied', async () => {
    const streams = Array.from({ length: shardCount }, (_, shard) => redisKeys.ledgerStream(shard));
    const lengths = await Promise.all(streams.map((stream) => redis.xlen(stream)));
    return lengths.every((length) => length === 0);
  });
  const { differences } = await verifyLedger(
    {
      redis,
      accounts: new AccountStore(mongo.db, config),
      ledger: new LedgerStore(mongo.db),
      prices: new PriceStore(mongo.db),
      reservations: new ReservationStore(redis),
    },
    { account: null, releaseOrphans: false, onProgress: () => undefined },
  );
  return differences;
}
