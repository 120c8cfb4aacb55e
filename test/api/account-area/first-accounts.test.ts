import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { createFirstAccount, type FirstAccountDeps } from '../../../api/account-area/first-account.ts';
import { GrantQuota } from '../../../api/account-area/grant-quota.ts';
import { SignupGrants } from '../../../api/account-area/signup-grants.ts';
import { unlinkAccount } from '../../../shared/account-area/unlink-account.ts';
import { AccountStore, type AccountDocument } from '../../../shared/accounts/account-store.ts';
import { creditClaim } from '../../../shared/accounts/credit-claim.ts';
import { ApiKeyStore } from '../../../shared/accounts/api-key-store.ts';
import { hashSecret } from '../../../shared/accounts/credentials.ts';
import { finishClaims } from '../../../workers/maintenance/finish-claims.ts';
import { RefillCodeStore, type RefillCodeDocument } from '../../../shared/accounts/refill-code-store.ts';
import { SignupGrantStore } from '../../../shared/accounts/signup-grant-store.ts';
import { HotAccountStore } from '../../../shared/accounts/hot-account-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { UserBalance } from '../../../api/contract/users.ts';
import type { ApiAccount, CreatedApiAccount } from '../../../api/contract/web-accounts.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { formatRub } from '../../../shared/encoding/money.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import type { WebUser } from '../../../shared/account-area/web-models.ts';
import { callApi } from '../../support/call-api.ts';
import type { TestStack } from '../../support/stack.ts';
import {
  callWeb,
  createRefillCode,
  createSeparateUser,
  findLedgerDifferences,
  linkAccount,
  startWebStack,
} from '../../support/web-accounts.ts';
import { waitFor } from '../../support/wait-for.ts';
import { watchCalls, type CallHooks } from '../../support/watch-calls.ts';
import { webStoresOf, type WebClient } from '../../support/web-client.ts';

/** A new user gets one account with the operator's sign-up grant, exactly once, even if a process dies at any point. */

let stack: TestStack;
let stores: FirstAccountDeps;

test.before(async () => {
  const env = { SIGNUP_BALANCE: '5.000000001', SIGNUP_FREE_REQUESTS: '3' };
  stack = await startWebStack({ env });
  stores = openStores();
});
test.after.always(() => stack.close());

/** The stores of an api process, with which its death is simulated. */
function openStores(): FirstAccountDeps {
  const { config, redis, mongo, log } = stack;
  const accounts = new AccountStore(mongo.db, config);
  const hotAccounts = new HotAccountStore(redis, accounts, new LedgerStore(mongo.db));
  const apiKeys = new ApiKeyStore(redis, accounts);
  return {
    config,
    redis,
    log,
    accounts,
    hotAccounts,
    apiKeys,
    codes: new RefillCodeStore(mongo.db),
    web: { ...webStoresOf(stack), grants: openGrants() },
  };
}

/** @param watch replaces the stores that grants use */
function openGrants(watch: <T extends object>(store: T) => T = (store) => store): SignupGrants {
  const { config, redis, mongo } = stack;
  const quota = watch(new GrantQuota(redis, config));
  return new SignupGrants({ config, quota, store: watch(new SignupGrantStore(mongo.db)) });
}

/** The request of a caller in a network that nobody else is in. */
const newAccount = (label = 'x') => ({ label, network: randomUUID() });

const createFirst = (client: WebClient, body: object = {}) =>
  callWeb<CreatedApiAccount>(client, 'POST', '/api-accounts/first', body);
const list = async (client: WebClient) => (await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts')).body;
const readProfile = (apiKey: string) => callApi<UserBalance>(stack.url, apiKey, 'GET', '/users/profile');
const readUser = async ({ _id }: WebUser): Promise<WebUser> => (await stores.web.users.findById(_id))!;

async function unlink(user: WebUser, linkId: number): Promise<void> {
  const link = await stores.web.links.find(user._id, linkId);
  await unlinkAccount(stores.web, link!);
}

test('if a worker credits a grant after an api process died, the grant is not credited again when the user returns', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const { balanceNano, freeRequests } = stack.config.signup;
  await stores.accounts.createWithId(user.reservedAccountId, { userType: 'default', requestsPerMinute: 60 });
  const grant = { balanceNano, freeRequests };
  const store = new SignupGrantStore(stack.mongo.db);
  const { claim } = await store.claim(user._id, user.reservedAccountId, grant);
  await creditClaim(stores, claim!);
  await stores.codes.settleClaim(claim!);
  // Redis stores the ids of credited refills for a week.
  await stack.redis.del(redisKeys.refill(claim!.accountId, claim!.refillId));
  const { status, body } = await createFirst(client);
  t.is(status, 201);
  t.like(body.account, { balance: '5.000000001', free_requests: 3 });
  t.is((await readProfile(body.api_key)).status, 200);
});

test('the first account is returned with a working key and the sign-up grant', async (t) => {
  const { client } = await createSeparateUser(stack);
  const { status, body } = await createFirst(client, { label: 'Мой' });
  t.is(status, 201);
  t.deepEqual(Object.keys(body), ['account', 'api_key', 'grant']);
  const profile = await readProfile(body.api_key);
  t.like(profile, { status: 200, body: { id: body.account.user_balance_id, free_requests: 3 } });
  t.like(body.account, {
    label: 'Мой',
    is_primary: true,
    balance: '5.000000001',
    total_balance_added: '5.000000001',
    free_requests: 3,
    user_type: 'default',
    ban: false,
    key_active: true,
    requests_per_minute: stack.config.defaultRpm,
  });
  t.deepEqual(await list(client), [body.account]);
  const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hi' }] };
  t.is((await stack.post('/v1/chat/completions', body.api_key, chat)).status, 200);
});

test('a first account without a label gets the default label', async (t) => {
  const { client } = await createSeparateUser(stack);
  t.is((await createFirst(client)).body.account.label, 'Основной');
});

test('a user that has already created or linked an account gets no first account', async (t) => {
  const { client } = await createSeparateUser(stack);
  await createFirst(client);
  const { client: linked } = await createSeparateUser(stack);
  await linkAccount(linked, await stack.createAccount());
  for (const one of [client, linked]) {
    const { status, body } = await callWeb(one, 'POST', '/api-accounts/first', {});
    t.is(status, 409);
    t.is(body.error.code, 'account_exists');
    t.is((await list(one)).length, 1);
  }
});

test('one of ten parallel requests for a first account is a 201 with a working key, and the others are 409', async (t) => {
  const { client } = await createSeparateUser(stack);
  await checkParallelFirsts(t, client);
});

test('after a process died, one of ten parallel requests is a 201 with a working key, and the others are 409', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  await leaveUnlinkedAccount(user);
  await checkParallelFirsts(t, client);
});

async function checkParallelFirsts(t: ExecutionContext, client: WebClient): Promise<void> {
  const responses = await Promise.all(Array.from({ length: 10 }, () => createFirst(client)));
  const [created, ...more] = responses.filter(({ status }) => status === 201);
  t.is(more.length, 0);
  t.is(responses.filter(({ status }) => status === 409).length, 9);
  const profile = await readProfile(created!.body.api_key);
  t.like(profile, { status: 200, body: { id: created!.body.account.user_balance_id } });
  t.deepEqual(await list(client), [created!.body.account]);
  t.is(created!.body.account.balance, '5.000000001');
}

test('a user who has unlinked the account can create another one, without the sign-up grant', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const first = (await createFirst(client)).body;
  await unlink(user, first.account.id);
  const second = await createFirst(client);
  t.is(second.status, 201);
  t.not(second.body.account.user_balance_id, first.account.user_balance_id);
  t.like(second.body.account, { balance: '0', free_requests: 0 });
  t.like(await readProfile(first.api_key), { status: 200, body: { free_requests: 3 } });
});

/** The stores of an api process, with hooks around each of their calls. */
function watchStores(hooks: CallHooks): FirstAccountDeps {
  const watch = watchCalls(hooks);
  const { accounts, codes, hotAccounts, apiKeys, web, ...rest } = stores;
  return {
    ...rest,
    accounts: watch(accounts),
    codes: watch(codes),
    hotAccounts: watch(hotAccounts),
    apiKeys: watch(apiKeys),
    web: { links: watch(web.links), users: watch(web.users), grants: openGrants(watch) },
  };
}

/** Thrown to simulate that the process was killed. */
class Killed extends Error {}

/** Requests a first account in a process that dies at one of its store calls. @returns whether the request completed */
async function dieAt(user: WebUser, killedAt: number, isCarriedOut: boolean): Promise<boolean> {
  const dieFrom = (first: number) => (call: number) => {
    if (call >= first) throw new Killed();
  };
  const dyingServices = watchStores(
    isCarriedOut
      ? { before: dieFrom(killedAt + 1), after: dieFrom(killedAt) }
      : { before: dieFrom(killedAt) },
  );
  try {
    await createFirstAccount(dyingServices, user, newAccount('dying'));
    return true;
  } catch (error) {
    if (error instanceof Killed) return false;
    throw error;
  }
}

/** Requests a first account, and pauses before one of its store calls until `finish` is called. */
async function pauseAt(user: WebUser, pausedAt: number) {
  let resume = (): void => undefined;
  const resumed = new Promise<void>((resolve) => (resume = resolve));
  let outcome: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve) => {
    const before = (call: number): Promise<void> | void => {
      if (call !== pausedAt) return;
      resolve();
      return resumed;
    };
    outcome = createFirstAccount(watchStores({ before }), user, newAccount())
      .then(({ apiKey }) => apiKey)
      .catch((error: unknown) => error)
      .finally(resolve);
  });
  return {
    async finish() {
      resume();
      return await outcome;
    },
  };
}

const readStoredAccount = (id: string) =>
  stack.mongo.db.collection<AccountDocument>('accounts').findOne({ _id: id });

/** The state after a process died an hour ago, before it linked the account. */
async function leaveUnlinkedAccount({ reservedAccountId: id }: WebUser): Promise<void> {
  await stores.accounts.createWithId(id, { userType: 'default', requestsPerMinute: 60 });
  const createdAt = new Date(Date.now() - 3_600_000);
  await stack.mongo.db
    .collection<AccountDocument>('accounts')
    .updateOne({ _id: id }, { $set: { createdAt } });
}

for (const isUnfinished of [false, true]) {
  const what = isUnfinished ? 'for an account that a dead process did not link' : 'for a new account';
  test(`if two requests ${what} interleave, one succeeds, and its key is the account’s`, async (t) => {
    // The store calls that create the account, reserve the grant, create the link, and reserve another id.
    const pauses = [1, 4, 6, 8];
    const pairs = pauses.flatMap((one) => pauses.map((other) => [one, other] as const));
    for (const [one, other] of pairs) {
      const { user } = await stores.web.users.findOrCreate(`${randomUUID()}@example.com`, { language: 'ru' });
      if (isUnfinished) await leaveUnlinkedAccount(user);
      const first = await pauseAt(user, one);
      const second = await pauseAt(user, other);
      const outcomes = [await first.finish(), await second.finish()];
      const keys = outcomes.filter((outcome) => typeof outcome === 'string');
      t.is(keys.length, 1, `${one}, ${other}`);
      const failure = outcomes.find((outcome) => typeof outcome !== 'string');
      t.like(failure, { code: 'account_exists' });
      t.is(
        (await readStoredAccount(user.reservedAccountId))!.keyHash,
        hashSecret(keys[0]!),
        `${one}, ${other}`,
      );
      t.is((await stores.web.links.list(user._id)).length, 1);
    }
  });
}

/** Credits the grant as workers do, without waiting until the claim is old enough. */
async function finishGrant({ _id }: WebUser): Promise<void> {
  const at = new Date(Date.now() - 60_000);
  await stack.mongo.db
    .collection<RefillCodeDocument>('refill_codes')
    .updateOne({ _id: `signup-${_id}` }, { $set: { 'redeemed.at': at } });
  const { redis, hotAccounts, codes } = stores;
  const ledger = new LedgerStore(stack.mongo.db);
  await finishClaims({ redis, hotAccounts, codes, ledger, log: stack.log });
}

for (const isCarriedOut of [false, true]) {
  const when = isCarriedOut ? 'after' : 'before';
  test(`if a process dies right ${when} any step, the user ends up with one account, one key and one grant`, async (t) => {
    for (let step = 1; ; step++) {
      const { client, user } = await createSeparateUser(stack);
      if (await dieAt(user, step, isCarriedOut)) {
        t.true(step > 8, 'every step was tested');
        break;
      }
      const again = await createFirst(client);
      const linked = await list(client);
      t.is(linked.length, 1, `step ${step}`);
      t.is(linked[0]!.user_balance_id, user.reservedAccountId);
      if (again.status === 201) {
        t.like(await readProfile(again.body.api_key), { status: 200, body: { id: user.reservedAccountId } });
      } else {
        t.is(again.status, 409, 'the account was linked before the process died');
        // The user can obtain its key with a mailed code.
        const key = await stores.accounts.revealKey(user.reservedAccountId);
        t.like(await readProfile(key!), { status: 200, body: { id: user.reservedAccountId } });
      }
      await finishGrant(user);
      t.like(await list(client), [{ balance: '5.000000001', free_requests: 3 }], `step ${step}`);
      await unlink(user, linked[0]!.id);
      t.not((await readUser(user)).reservedAccountId, user.reservedAccountId);
    }
  });
}

test('a grant is credited even if the process dies after promising it and the user does not retry', async (t) => {
  const { user } = await createSeparateUser(stack);
  const { web, ...rest } = stores;
  const watch = watchCalls({
    before: (call) => {
      if (call === 1) throw new Killed();
    },
  });
  const dyingServices = { ...rest, web: { ...web, links: watch(web.links) } };
  await t.throwsAsync(createFirstAccount(dyingServices, user, newAccount()), { instanceOf: Killed });
  await finishGrant(user);
  await finishGrant(user);
  const account = await stack.readAccount(user.reservedAccountId);
  t.is(formatRub(account.balanceNano), '5.000000001');
});

test('if another account is linked while a first account is being created, the first account is not added, and its grant remains available', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const { links } = stores.web;
  const { id: accountId } = await stack.createAccount();
  const { web, ...rest } = stores;
  const watch = watchCalls({
    before: async (call) => {
      if (call !== 1) return;
      const { createdAt } = await links.create({ userId: user._id, accountId, label: 'other' });
      await waitFor('the next millisecond', () => Date.now() > createdAt.getTime());
    },
  });
  const racing = { ...rest, web: { ...web, links: watch(links) } };
  await t.throwsAsync(createFirstAccount(racing, user, newAccount('first')), { code: 'account_exists' });
  const [other, ...more] = await links.list(user._id);
  t.is(other!.accountId, accountId);
  t.deepEqual(more, []);
  await unlink(user, other!._id);
  const { status, body } = await createFirst(client);
  t.is(status, 201);
  t.like(body.account, { balance: '5.000000001', free_requests: 3 });
});

test('if an outage begins after the account was linked, its key is still returned', async (t) => {
  const { user } = await createSeparateUser(stack);
  const fail = (): Promise<never> => Promise.reject(new AppError('service_unavailable'));
  const hotAccounts = new Proxy(stores.hotAccounts, { get: () => fail });
  const { apiKey } = await createFirstAccount({ ...stores, hotAccounts }, user, newAccount());
  t.is((await readProfile(apiKey)).status, 200);
  await finishGrant(user);
  const account = await stack.readAccount(user.reservedAccountId);
  t.is(formatRub(account.balanceNano), '5.000000001');
});

test('if a delayed request runs after the first account was created and unlinked, it links nothing and replaces no key', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const first = (await createFirst(client)).body;
  await unlink(user, first.account.id);
  // The delayed request read the user before all of these changes.
  const createdAt = new Date(Date.now() - 3_600_000);
  await stack.mongo.db
    .collection<AccountDocument>('accounts')
    .updateOne({ _id: user.reservedAccountId }, { $set: { createdAt } });
  const error = await t.throwsAsync(createFirstAccount(stores, user, newAccount('late')), {
    instanceOf: AppError,
  });
  t.is(error.code, 'account_exists');
  t.deepEqual(await list(client), []);
  t.is((await readProfile(first.api_key)).status, 200);
});

interface TestUser {
  readonly client: WebClient;
  readonly user: WebUser;
}

/** Each action has the index of the user that performs it. */
const actions = fc.array(
  fc.record({
    who: fc.nat({ max: 1 }),
    what: fc.constantFrom('first', 'first', 'unlink', 'link', 'redeem', 'redeem twice', 'two firsts'),
    which: fc.nat({ max: 5 }),
  }),
  { minLength: 5, maxLength: 12 },
);

test('under random actions of two users, each user gets one grant, each code is credited once, and the ledger is consistent', async (t) => {
  await fc.assert(
    fc.asyncProperty(actions, async (sequence) => {
      const parties: TestUser[] = [await createSeparateUser(stack), await createSeparateUser(stack)];
      const keys = new Map<string, string>();
      const redeemed = new Map<string, number>();
      for (const { who, what, which } of sequence) {
        const party = parties[who]!;
        for (const { account, api_key: apiKey } of await performAction(party, what, which, keys, redeemed))
          keys.set(account.user_balance_id, apiKey);
      }
      const linked = (await Promise.all(parties.map(({ client }) => list(client)))).flat();
      t.is(new Set(linked.map((one) => one.user_balance_id)).size, linked.length);
      let granted = 0;
      for (const [id, apiKey] of keys) {
        const { balanceNano, totalAddedNano, freeRequests } = await stack.readAccount(id);
        t.is(balanceNano, totalAddedNano);
        const expectedCodes = BigInt(redeemed.get(id) ?? 0) * 7_000_000_001n;
        const isGranted = balanceNano !== expectedCodes;
        t.is(balanceNano, expectedCodes + (isGranted ? 5_000_000_001n : 0n));
        t.is(freeRequests, isGranted ? 3 : 0);
        t.is((await readProfile(apiKey)).status, 200);
        if (isGranted) granted += 1;
      }
      const grants = await stack.mongo.db
        .collection<RefillCodeDocument>('refill_codes')
        .countDocuments({ _id: { $in: parties.map(({ user }) => `signup-${user._id}`) } });
      t.is(granted, grants);
    }),
    { numRuns: 8 },
  );
  t.deepEqual(await findLedgerDifferences(stack), []);
});

/** @returns the accounts that were created */
async function performAction(
  { client, user }: TestUser,
  what: string,
  which: number,
  keys: ReadonlyMap<string, string>,
  redeemed: Map<string, number>,
): Promise<CreatedApiAccount[]> {
  if (what === 'first' || what === 'two firsts') {
    const responses = await Promise.all(
      Array.from({ length: what === 'first' ? 1 : 2 }, () => createFirst(client)),
    );
    return responses.flatMap(({ status, body }) => (status === 201 ? [body] : []));
  }
  if (what === 'link') {
    const apiKey = [...keys.values()][which % Math.max(1, keys.size)];
    if (apiKey !== undefined) await callWeb(client, 'POST', '/api-accounts/link', { api_key: apiKey });
    return [];
  }
  const ownedAccounts = await list(client);
  const account = ownedAccounts[which % Math.max(1, ownedAccounts.length)];
  if (account === undefined) return [];
  if (what === 'unlink') await unlink(user, account.id);
  else {
    const code = await createRefillCode(stack, '7.000000001');
    const path = `/api-accounts/${account.id}/redeem`;
    const attemptCount = what === 'redeem' ? 1 : 2;
    await Promise.all(Array.from({ length: attemptCount }, () => callWeb(client, 'POST', path, { code })));
    const id = account.user_balance_id;
    redeemed.set(id, (redeemed.get(id) ?? 0) + 1);
  }
  return [];
}
