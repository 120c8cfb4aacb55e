import { randomUUID } from 'node:crypto';
import { Limits, webLimits, type WebLimitName } from '../../api/account-area/limits.ts';
import { changeAccount } from '../../shared/accounts/change-account.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { changeSettings } from './change-settings.ts';
import { prepareCall, type Call, type DescribedOperation, type PreparedCall } from './described-calls.ts';
import type { TestStack } from './stack.ts';
import { webStoresOf } from './web-client.ts';

/** Uses up all limits of a network. @returns one of its addresses, for a stack that trusts its proxy */
export async function exhaustNetworkLimits(stack: TestStack): Promise<string> {
  const address = '203.0.113.9';
  const names = (Object.keys(webLimits) as WebLimitName[]).filter((name) => name.endsWith('-network'));
  for (const name of names) await exhaustLimit(stack, name, address);
  return address;
}

/** Uses up one limit. */
export async function exhaustLimit(
  { redis, config }: TestStack,
  name: WebLimitName,
  who: string,
): Promise<void> {
  const limits = new Limits(redis, config.masterKey);
  await Promise.all(Array.from({ length: webLimits[name].limit }, () => limits.count([{ name, who }])));
}

export interface Provocation {
  /** The expected `error.code`. */
  readonly code: string;
  /** A client address that has used up its limits. */
  readonly limitedAddress: string;
  /** A call that would succeed. */
  readonly call: PreparedCall;
}

/** Changes a valid call to an account area operation so that it fails with this error. */
export async function provoke(
  stack: TestStack,
  described: DescribedOperation,
  { code, limitedAddress, call }: Provocation,
): Promise<Call> {
  const { headers, path } = call;
  const { body: _, ...withoutBody } = call;
  switch (code) {
    case 'unauthenticated':
      return { ...call, headers: {} };
    case 'csrf_failed':
      return { ...call, headers: { ...headers, 'x-csrf-token': 'x' } };
    case 'origin_refused':
      return { ...call, headers: { ...headers, origin: 'https://elsewhere.example' } };
    case 'too_many_attempts':
      return 'x-csrf-token' in headers
        ? await provokeByState(stack, described, code)
        : { ...call, headers: { ...headers, 'x-forwarded-for': limitedAddress } };
    case 'payload_too_large':
      return { ...call, body: JSON.stringify('x'.repeat(70_000)) };
    case 'unsupported_media_type':
      return { ...call, body: '{}', contentType: 'text/plain' };
    case 'validation_failed':
      return path === undefined ? { ...call, body: '[]' } : { ...call, path: wrongPath(path) };
    case 'not_found':
      return { ...call, path: { session_id: randomUUID(), account_id: 1 } };
    case 'invalid_code':
    case 'invalid_api_key':
      // The code or key in the description's example, which was never issued.
      return withoutBody;
    default:
      return await provokeByState(stack, described, code);
  }
}

/** Returns a call that fails because of the state of its user or account. Each call gets a new user. */
async function provokeByState(stack: TestStack, described: DescribedOperation, code: string): Promise<Call> {
  const call = await prepareCall(stack, described);
  const { user, link } = call;
  const { users, links } = webStoresOf(stack);
  switch (code) {
    case 'account_banned':
      if (link === undefined) await users.ban(user!._id, 'a test');
      else await banAccount(stack, link.accountId);
      return call;
    case 'too_many_attempts':
      await exhaustLimit(stack, 'changes-user', user!._id);
      return call;
    case 'address_not_allowed':
      await changeSettings(stack, call.accountId!, { addresses: ['192.0.2.1'] });
      return call;
    case 'key_expired':
      await changeSettings(stack, call.accountId!, { expiresAt: new Date(Date.now() - 1_000) });
      return call;
    case 'already_linked':
      return await linkToAnotherUser(stack, described, call);
    case 'account_exists': {
      const { id: accountId } = await stack.createAccount();
      await links.create({ userId: user!._id, accountId, label: 'First' });
      return call;
    }
    default:
      throw new Error(`cannot provoke ${code}`);
  }
}

const wrongPath = (path: NonNullable<Call['path']>): NonNullable<Call['path']> =>
  Object.fromEntries(Object.keys(path).map((name) => [name, 'none']));

/** Links the account of the call to another user. @returns the same call */
async function linkToAnotherUser(
  stack: TestStack,
  described: DescribedOperation,
  call: PreparedCall,
): Promise<Call> {
  const { headers } = await prepareCall(stack, described);
  const first = await fetch(`${stack.url}/v1/web/api-accounts/link`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: call.body!,
  });
  if (first.status !== 201) throw new Error(`the first link got ${first.status}`);
  return call;
}

async function banAccount({ redis, mongo, config }: TestStack, accountId: string): Promise<void> {
  const accounts = new AccountStore(mongo.db, config);
  const hotAccounts = new HotAccountStore(redis, accounts, new LedgerStore(mongo.db));
  await hotAccounts.load(accountId);
  await changeAccount({ redis, accounts, hotAccounts }, accountId, { banned: true, banReason: 'a test' });
}
