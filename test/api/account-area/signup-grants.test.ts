import { randomUUID } from 'node:crypto';
import { domainToASCII } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { callerNetwork } from '../../../api/http/callers/caller-network.ts';
import { GrantQuota } from '../../../api/account-area/grant-quota.ts';
import { SignupGrants } from '../../../api/account-area/signup-grants.ts';
import type { ApiAccount, CreatedApiAccount } from '../../../api/contract/web-accounts.ts';
import type { UserBalance } from '../../../api/contract/users.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { SignupGrantStore, type SignupDecision } from '../../../shared/accounts/signup-grant-store.ts';
import { unlinkAccount } from '../../../shared/account-area/unlink-account.ts';
import type { WebUser } from '../../../shared/account-area/web-models.ts';
import { findKeys } from '../../support/all-of-redis.ts';
import { callApi } from '../../support/call-api.ts';
import { captureLog } from '../../support/captured-log.ts';
import { startOtherApi } from '../../support/other-api.ts';
import { ageWindow } from '../../support/sliding-windows.ts';
import type { TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { callWeb, findLedgerDifferences, startWebStack } from '../../support/web-accounts.ts';
import { createWebUser, WebClient, webStoresOf } from '../../support/web-client.ts';
import { watchCalls } from '../../support/watch-calls.ts';

/** The sign-up grant costs money, so it is bounded without the captcha: per network, per mailbox, by mail domain. */

const env = {
  SIGNUP_BALANCE: '2.5',
  SIGNUP_FREE_REQUESTS: '4',
  SIGNUP_NO_GRANT_DOMAINS: 'Rented.example, *.кафе.example.',
};
const granted = { balance: '2.5', free_requests: 4, reason: null, message_en: null, message_ru: null };
const nothing = { balance: '0', free_requests: 0 };

const captured = captureLog();
let stack: TestStack;

test.before(async () => {
  stack = await startWebStack({ env, log: captured.log });
});
test.after.always(() => stack.close());

let blocks = 0;
/** An address in a /24 that no other test uses. */
function newAddress(): string {
  blocks += 1;
  return `10.${Math.floor(blocks / 250)}.${blocks % 250}.1`;
}
const newEmail = (domain = 'example.com'): string => `${randomUUID()}@${domain}`;

interface Party {
  readonly client: WebClient;
  readonly user: WebUser;
}

const signUp = (address: string, email = newEmail()): Promise<Party> =>
  createWebUser(stack, email, { headers: { 'x-forwarded-for': address } });

const createFirst = ({ client }: Party) =>
  callWeb<CreatedApiAccount>(client, 'POST', '/api-accounts/first', {});

async function signUpAndCreate(address: string, email?: string) {
  const party = await signUp(address, email);
  const { status, body } = await createFirst(party);
  if (status !== 201) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return { ...party, ...body };
}

async function checkReasons(
  t: ExecutionContext,
  addresses: readonly string[],
  expected: readonly (string | null)[],
): Promise<void> {
  const reasons: (string | null)[] = [];
  for (const address of addresses) reasons.push((await signUpAndCreate(address)).grant.reason);
  t.deepEqual(reasons, expected);
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

test.serial(
  'five first accounts a day from one address get the grant; the sixth is created with nothing, says so, and works',
  async (t) => {
    const address = newAddress();
    for (let i = 0; i < 5; i++) {
      const { grant, account } = await signUpAndCreate(address);
      t.deepEqual(grant, granted);
      t.like(account, { balance: '2.5', free_requests: 4 });
    }
    const { user, account, api_key: apiKey, grant } = await signUpAndCreate(address);
    t.like(account, { ...nothing, total_balance_added: '0', ban: false });
    t.like(grant, { ...nothing, reason: 'network_limit' });
    t.regex(
      grant.message_en!,
      /^The account was created without starting credit: too many new users on your network /,
    );
    t.regex(grant.message_ru!, /^Аккаунт создан без стартового бонуса: в вашей сети /);
    const profile = await callApi<UserBalance>(stack.url, apiKey, 'GET', '/users/profile');
    t.like(profile, { status: 200, body: { balance: 0, free_requests: 0 } });
    const accountId = account.user_balance_id;
    t.truthy(
      captured.lines.find(
        (line) =>
          line['msg'] === 'no sign-up grant' &&
          line['accountId'] === accountId &&
          line['reason'] === 'network_limit',
      ),
    );
    const event = await waitFor('the end of the event', async () =>
      (await webStoresOf(stack).audit.list(user._id, 10)).find(({ outcome }) => outcome === 'done'),
    );
    t.like(event, { action: 'account-created', grant: 'network_limit', address });
  },
);

test.serial('the addresses of an IPv4 /24 get three times as many grants as one address', async (t) => {
  const block = newAddress().replace(/\.1$/, '');
  const address = (host: number): string => `${block}.${host}`;
  const hosts = [1, 2, 3].flatMap((host) => times(6, address(host)));
  const five = [...times<string | null>(5, null), 'network_limit'];
  await checkReasons(t, [...hosts, address(4)], [...five, ...five, ...five, 'network_limit']);
  await checkReasons(t, [newAddress()], [null]);
});

test.serial('an IPv6 /64 gets as many grants as an address, and its /48 three times as many', async (t) => {
  const networks = ['1::1', '1::2', '2::1', '3:4::9'].map((host) => `2001:db8:77:${host}`);
  const addresses = [
    ...times(3, networks[0]!),
    ...times(3, networks[1]!),
    ...times(5, networks[2]!),
    ...times(5, networks[3]!),
    '2001:db8:77:ffff::1',
  ];
  await checkReasons(t, addresses, [...times(5, null), 'network_limit', ...times(10, null), 'network_limit']);
  await checkReasons(t, ['2001:db8:78:1::1'], [null]);
});

test.serial('a day after the first grant of a network, it has another one', async (t) => {
  const address = newAddress();
  await checkReasons(t, times(6, address), [...times(5, null), 'network_limit']);
  for (const key of await findKeys(stack.redis, 'mg:{web}:limit:signup-grants:*')) {
    const [first] = await stack.redis.zrange(key, '0', '0');
    if ((await stack.redis.zcard(key)) === 5) await stack.redis.zincrby(key, -86_400_001, first!);
  }
  await checkReasons(t, times(2, address), [null, 'network_limit']);
});

test.serial(
  'of parallel sign-ups from one address in two api processes, exactly five get the grant, and the ledger agrees',
  async (t) => {
    const other = await startOtherApi(t, stack, { PORT: '0' });
    const address = newAddress();
    const parties = await Promise.all(times(16, 0).map(() => signUp(address)));
    const outcomes = await Promise.all(
      parties.map(async ({ client, user }, i) => {
        const elsewhere = useOther(client, other, address);
        const clients = [[client, elsewhere], [client], [elsewhere]][i % 3]!;
        await Promise.all(clients.map((one) => createFirst({ client: one, user })));
        // A busy machine may have answered 503. A retry completes what was begun.
        await waitFor('the account', async () =>
          [201, 409].includes((await createFirst({ client, user })).status),
        );
        const [account] = (await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts')).body;
        return { account, decision: await new SignupGrantStore(stack.mongo.db).find(user._id) };
      }),
    );
    t.is(outcomes.filter(({ decision }) => decision?.denialReason === null).length, 5);
    for (const { account, decision } of outcomes) {
      if (decision?.denialReason === null) t.like(account, { balance: '2.5', free_requests: 4 });
      else t.like(account, nothing);
    }
    t.deepEqual(await findLedgerDifferences(stack), []);
  },
);

/** The same session at another api process. */
function useOther({ cookies, csrfToken }: WebClient, url: string, address: string): WebClient {
  const client = new WebClient(url, { headers: { 'x-forwarded-for': address } });
  for (const [name, value] of cookies) client.cookies.set(name, value);
  client.csrfToken = csrfToken;
  return client;
}

test.serial(
  'a user who got nothing gets nothing later either, neither from another network nor with another account',
  async (t) => {
    const address = newAddress();
    await checkReasons(t, times(5, address), times(5, null));
    const { user, account, grant, client } = await signUpAndCreate(address);
    t.is(grant.reason, 'network_limit');
    const { links } = webStoresOf(stack);
    await unlinkAccount(webStoresOf(stack), (await links.find(user._id, account.id))!);
    const { body } = await callWeb<CreatedApiAccount>(client, 'POST', '/api-accounts/first', {});
    t.is(body.grant.reason, 'network_limit');
    await unlinkAccount(webStoresOf(stack), (await links.find(user._id, body.account.id))!);
    const elsewhere = await createWebUser(stack, user.email, {
      headers: { 'x-forwarded-for': newAddress() },
    });
    const third = (await createFirst(elsewhere)).body;
    t.like(third, { account: nothing, grant: { ...nothing, reason: 'network_limit' } });
  },
);

test.serial(
  'a user who has unlinked the account with the grant is told that it has the grant, also after Redis lost its data',
  async (t) => {
    const { user, account, client } = await signUpAndCreate(newAddress());
    const { links } = webStoresOf(stack);
    await unlinkAccount(webStoresOf(stack), (await links.find(user._id, account.id))!);
    const keys = await findKeys(stack.redis, 'mg:{web}:limit:signup-grants:*');
    for (const key of keys) await stack.redis.rename(key, `${key}:lost`);
    await stack.redis.del(redisKeys.refill(account.user_balance_id, `signup-${user._id}`));
    const { body } = await callWeb<CreatedApiAccount>(client, 'POST', '/api-accounts/first', {});
    for (const key of keys) await stack.redis.rename(`${key}:lost`, key);
    t.like(body, { account: nothing, grant: { ...nothing, reason: 'already_granted' } });
  },
);

for (const [what, email] of [
  ['a provider of disposable addresses', newEmail('mailinator.com')],
  ['its subdomain', newEmail('a.b.mailinator.com')],
  ['a domain of the operator’s list', newEmail('rented.example')],
  ['a subdomain of the operator’s list', newEmail('mx.rented.example')],
  ['an internationalised domain of the operator’s list', newEmail(domainToASCII('mx.кафе.example'))],
] as const) {
  test.serial(`an address of ${what} gets no grant, and uses up none of its network`, async (t) => {
    const address = newAddress();
    const { account, grant } = await signUpAndCreate(address, email);
    t.like(account, nothing);
    t.like(grant, { ...nothing, reason: 'disposable_email' });
    await checkReasons(t, times(6, address), [...times(5, null), 'network_limit']);
  });
}

test.serial(
  'addresses whose mail goes to the same mailbox get one grant, from whatever network',
  async (t) => {
    const name = `ann.${randomUUID().slice(0, 8)}`;
    const aliases = [`${name}@gmail.com`, `${name}+1@gmail.com`, `${name.replace('.', '')}@googlemail.com`];
    const reasons: (string | null)[] = [];
    for (const email of aliases) reasons.push((await signUpAndCreate(newAddress(), email)).grant.reason);
    t.deepEqual(reasons, [null, 'mailbox_granted', 'mailbox_granted']);
    const box = randomUUID();
    const parallel = await Promise.all(
      [1, 2, 3, 4].map((i) => signUpAndCreate(newAddress(), `${box}+${i}@example.com`)),
    );
    t.is(parallel.filter(({ grant }) => grant.reason === null).length, 1);
  },
);

test.serial('a user who was deleted by hand gets no second grant with the same address', async (t) => {
  const { user, account } = await signUpAndCreate(newAddress());
  await webStoresOf(stack).links.delete(user._id, account.id);
  await stack.mongo.db.collection<{ _id: string }>('web_users').deleteOne({ _id: user._id });
  const { grant } = await signUpAndCreate(newAddress(), user.email);
  t.is(grant.reason, 'mailbox_granted');
});

for (const [what, off] of [
  ['SIGNUP_GRANTS_PER_NETWORK is 0', { SIGNUP_GRANTS_PER_NETWORK: '0' }],
  ['the grant is zero', { SIGNUP_BALANCE: '0', SIGNUP_FREE_REQUESTS: '0' }],
] as const) {
  test.serial(
    `while ${what}, first accounts start with nothing, and nothing is decided for later`,
    async (t) => {
      const other = await startOtherApi(t, stack, { PORT: '0', ...off });
      const address = newAddress();
      const party = await signUp(address);
      const client = useOther(party.client, other, address);
      const { body } = await createFirst({ client, user: party.user });
      t.like(body, { account: nothing, grant: { ...nothing, reason: 'not_offered' } });
      t.regex(body.grant.message_en!, /without starting credit: this service does not offer it/);
      t.is(await new SignupGrantStore(stack.mongo.db).find(party.user._id), null);
      const { links } = webStoresOf(stack);
      await unlinkAccount(webStoresOf(stack), (await links.find(party.user._id, body.account.id))!);
      t.is((await createFirst(party)).body.grant.reason, null);
    },
  );
}

class Killed extends Error {}

/** Decides about a user in a process that dies around one of its store calls. */
async function decideAndDie(user: WebUser, network: string, step: number, isCarriedOut: boolean) {
  const { config, redis, mongo } = stack;
  const die = (call: number): void => {
    if (call >= step) throw new Killed();
  };
  const watch = watchCalls(isCarriedOut ? { after: die } : { before: die });
  const grants = new SignupGrants({
    config,
    quota: watch(new GrantQuota(redis, config)),
    store: watch(new SignupGrantStore(mongo.db)),
  });
  return await grants.decide(user, network).catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error;
    return null;
  });
}

const decide = (user: WebUser, network: string) => decideAndDie(user, network, Infinity, false);
const newUser = async (): Promise<WebUser> => (await createWebUser(stack, newEmail())).user;

test.serial(
  'if the process dies at any step, a retry takes no second part of the quota and gets the grant',
  async (t) => {
    for (const isCarriedOut of [false, true]) {
      for (let step = 1; step <= 4; step++) {
        const network = newAddress();
        const users = await Promise.all(times(5, 0).map(() => newUser()));
        for (const user of users) {
          t.is(await decideAndDie(user, network, step, isCarriedOut), null);
          await decideAndDie(user, network, step + 1, isCarriedOut);
        }
        const late = await newUser();
        const isTaken = isCarriedOut ? step >= 1 : step >= 2;
        if (isTaken && step > 1)
          t.is((await decide(late, network))?.denialReason, 'network_limit', `step ${step}`);
        for (const user of users) t.is((await decide(user, network))?.denialReason, null, `step ${step}`);
        t.is((await decide(await newUser(), network))?.denialReason, 'network_limit');
      }
    }
  },
);

test.serial(
  'a user whose mailbox was reserved before the process died gets the grant, even if the network is full by then',
  async (t) => {
    const network = newAddress();
    const user = await newUser();
    await decideAndDie(user, network, 3, true);
    const full = newAddress();
    for (let i = 0; i < 5; i++) await decide(await newUser(), full);
    t.like(await decide(user, full), { denialReason: null, accountId: user.reservedAccountId });
  },
);

const attempts = fc.array(
  fc.record({
    who: fc.nat({ max: 9 }),
    step: fc.integer({ min: 1, max: 6 }),
    isCarriedOut: fc.boolean(),
  }),
  { minLength: 20, maxLength: 40 },
);

test.serial(
  'under random crashes, retries and parallel requests, a network never gets more grants than its quota, and a decision never changes',
  async (t) => {
    const store = new SignupGrantStore(stack.mongo.db);
    await fc.assert(
      fc.asyncProperty(attempts, async (sequence) => {
        const network = newAddress();
        const users = await Promise.all(times(10, 0).map(() => newUser()));
        const seen = new Map<string, SignupDecision['denialReason']>();
        const attempt = async ({ who, step, isCarriedOut }: (typeof sequence)[number]): Promise<void> => {
          const user = users[who]!;
          const decision = await decideAndDie(user, network, step, isCarriedOut);
          if (decision === null) return;
          const earlier = seen.get(user._id);
          if (earlier !== undefined) t.is(decision.denialReason, earlier);
          seen.set(user._id, decision.denialReason);
        };
        for (let i = 0; i < sequence.length; i += 4)
          await Promise.all(sequence.slice(i, i + 4).map((one) => attempt(one)));
        const decisions = await Promise.all(users.map(({ _id }) => store.find(_id)));
        const grants = decisions.filter((one) => one !== null && one.denialReason === null).length;
        t.true(grants <= 5, String(grants));
      }),
      { numRuns: 10 },
    );
  },
);

test.serial(
  'an api with another quota applies it, and the quotas are by the network of the caller',
  async (t) => {
    const { config, redis } = stack;
    const quota = new GrantQuota(redis, { ...config, signup: { ...config.signup, grantsPerNetwork: 2 } });
    const network = callerNetwork(newAddress());
    t.deepEqual(
      [
        await quota.take('a', network),
        await quota.take('a', network),
        await quota.take('b', network),
        await quota.take('c', network),
        await quota.take('b', network),
      ],
      [true, true, true, false, true],
    );
  },
);

test.serial(
  'a repeated attempt is counted from its repetition, so that no day has more grants than the quota',
  async (t) => {
    const { config, redis } = stack;
    const quota = new GrantQuota(redis, { ...config, signup: { ...config.signup, grantsPerNetwork: 1 } });
    const network = callerNetwork(newAddress());
    const before = new Set(await findKeys(redis, 'mg:{web}:limit:signup-grants:*'));
    t.true(await quota.take('a', network));
    const keys = (await findKeys(redis, 'mg:{web}:limit:signup-grants:*')).filter((key) => !before.has(key));
    const age = async (ms: number): Promise<void> => {
      for (const key of keys) if ((await redis.exists(key)) === 1) await ageWindow(redis, key, ms);
    };
    await age(86_000_000);
    t.true(await quota.take('a', network));
    await age(1_000_000);
    t.false(await quota.take('b', network));
    await age(86_000_000);
    t.true(await quota.take('b', network));
  },
);

test.serial('lists of accounts show the balance that the grant names', async (t) => {
  const { client, account } = await signUpAndCreate(newAddress());
  t.deepEqual((await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts')).body, [account]);
});
