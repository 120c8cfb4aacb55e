import test, { type ExecutionContext } from 'ava';
import { maxUnknownCodes } from '../../../api/endpoints/redeem-code.ts';
import { RefillCodeStore } from '../../../shared/accounts/refill-code-store.ts';
import type { RequestLogPage } from '../../../api/contract/request-logs.ts';
import type { RefillLogPage } from '../../../api/contract/users.ts';
import type { RedeemedRefillCode } from '../../../api/contract/web-accounts.ts';
import { formatRub } from '../../../shared/encoding/money.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { callApi } from '../../support/call-api.ts';
import type { TestAccount, TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  banAccount,
  callWeb,
  createRefillCode,
  createSeparateUser,
  findLedgerDifferences,
  linkAccount,
  startWebStack,
} from '../../support/web-accounts.ts';
import { webStoresOf, type WebClient } from '../../support/web-client.ts';

/** A web user redeems codes for an account and reads its history exactly as with the account's key. */

let stack: TestStack;

test.before(async () => {
  stack = await startWebStack({ workers: [] });
});
test.after.always(() => stack.close());

interface LinkedUser {
  readonly client: WebClient;
  readonly account: TestAccount;
  /** The account's path in the account area. */
  readonly path: string;
  readonly userId: string;
}

async function createLinkedUser(balance = '1.5', freeRequests = 2): Promise<LinkedUser> {
  const { client, user } = await createSeparateUser(stack);
  const account = await stack.createAccount({ balance, freeRequests });
  const { id } = await linkAccount(client, account);
  return { client, account, path: `/api-accounts/${id}`, userId: user._id };
}

const redeem = <T = { error: { code: string; message: string }; detail: object[] }>(
  { client, path }: LinkedUser,
  code: unknown,
) => callWeb<T>(client, 'POST', `${path}/redeem`, { code });
const unknownCode = (i: number): string => `2222-2222-2222-2222-222${'23456789ABCDEFGHJKMNPQRSTUVWXYZ'[i]}`;

// Must run first: another test starts a worker.
test.serial(
  'the exact redeemed amounts are returned, and are in the refill logs immediately, even without a worker',
  async (t) => {
    const user = await createLinkedUser();
    const code = await createRefillCode(stack, '50.000000001', 3);
    const { status, body } = await redeem<RedeemedRefillCode>(user, code.toLowerCase());
    t.is(status, 200);
    t.deepEqual(body, {
      balance_added: '50.000000001',
      free_requests_added: 3,
      balance: '51.500000001',
      total_balance_added: '51.500000001',
      free_requests: 5,
    });
    const log = await callWeb<RefillLogPage>(user.client, 'GET', `${user.path}/refill-logs`);
    t.is(log.body.total_count, 1);
    t.like(log.body.items[0], {
      refill_code_redeemed: code,
      balance_added: '50.000000001',
      free_requests_added: 3,
    });
    const events = await webStoresOf(stack).audit.list(user.userId, 10);
    t.like(events[0], {
      action: 'code-redeemed',
      accountId: user.account.id,
      outcome: 'done',
      notice: 'none',
    });
    t.false(JSON.stringify(events).includes(code));
  },
);

test('a code is redeemed once, even if it is used with the key and in the account area at the same time', async (t) => {
  const user = await createLinkedUser('1', 0);
  const code = await createRefillCode(stack);
  const responses = await Promise.all([
    ...Array.from({ length: 5 }, () => redeem(user, code)),
    ...Array.from({ length: 5 }, () =>
      callApi(stack.url, user.account.apiKey, 'POST', '/users/redeem', { code }),
    ),
  ]);
  t.is(responses.filter(({ status }) => status === 200).length, 1);
  for (const { body } of responses.filter(({ status }) => status !== 200))
    t.like(body, { error: { code: 'invalid_code' }, detail: [{ loc: ['body', 'code'] }] });
  t.is(formatRub((await stack.readAccount(user.account.id)).balanceNano), '11');
});

test('a rejected code gives the same error as with the key, and guesses with and without the key have one common limit', async (t) => {
  const [user, other] = [await createLinkedUser(), await createLinkedUser()];
  const { apiKey, id } = user.account;
  const used = await createRefillCode(stack);
  t.is((await redeem(other, used)).status, 200);
  const revoked = await createRefillCode(stack);
  await new RefillCodeStore(stack.mongo.db).revoke(revoked);
  for (const code of [used, revoked, '', 'x'.repeat(257), 7, null]) {
    const webResponse = await redeem(user, code);
    const keyResponse = await callApi(stack.url, apiKey, 'POST', '/users/redeem', { code });
    t.is(webResponse.status, 422);
    t.is(keyResponse.status, 422);
    t.deepEqual(webResponse.body.error, keyResponse.body.error);
    const [issue] = webResponse.body.detail;
    t.like(issue, (keyResponse.body.detail as object[])[0]!);
  }
  t.is(await stack.redis.exists(redisKeys.unknownCodes(id)), 0);
  for (let i = 1; i < maxUnknownCodes; i++) {
    const { status, body } =
      i % 2 === 0
        ? await redeem(user, unknownCode(i))
        : await callApi(stack.url, apiKey, 'POST', '/users/redeem', { code: unknownCode(i) });
    t.is(status, 422);
    t.is(body.error.code, 'invalid_code');
  }
  t.is((await redeem(user, await createRefillCode(stack))).status, 200);
  const last = await redeem(user, unknownCode(0));
  t.is(last.status, 403);
  t.is(last.body.error.code, 'account_banned');
  t.is((await callApi(stack.url, apiKey, 'GET', '/users/profile')).status, 403);
  const shown = await callWeb<{ ban: boolean; key_active: boolean }>(user.client, 'GET', user.path);
  t.like(shown.body, { ban: true, key_active: false });
  t.is((await redeem(other, await createRefillCode(stack))).status, 200, 'other accounts are unaffected');
});

test('a banned account can neither redeem a code nor read its history, and the code stays unused', async (t) => {
  const user = await createLinkedUser();
  await banAccount(stack, user.account.id);
  const code = await createRefillCode(stack);
  const rejection = await redeem(user, code);
  t.like(rejection, { status: 403, body: { error: { code: 'account_banned' } } });
  for (const what of ['request-logs', 'refill-logs', 'stats']) {
    const response = await callWeb(user.client, 'GET', `${user.path}/${what}`);
    t.is(response.status, 403, what);
    t.is(response.body.error.code, 'account_banned');
  }
  t.is((await new RefillCodeStore(stack.mongo.db).find(code))?.redeemed, null);
});

test('a code that would raise the balance above the maximum is rejected, and stays unused', async (t) => {
  const user = await createLinkedUser('8999995');
  const code = await createRefillCode(stack);
  const { status, body } = await redeem(user, code);
  t.is(status, 422);
  t.is(body.error.code, 'validation_failed');
  t.like(body.detail, [{ loc: ['body', 'code'] }]);
  t.is((await new RefillCodeStore(stack.mongo.db).find(code))?.redeemed, null);
});

const equivalentReads: [web: string, key: string, queries: readonly string[]][] = [
  [
    'request-logs',
    'request_logs',
    [
      '',
      '?page=1',
      '?page=2',
      '?page=0',
      '?page=x',
      '?outcome=success',
      '?outcome=x',
      '?model=demo-echo&since=2020-01-01',
      '?until=2020-01-01',
      '?since=x',
      '?request_id=none',
    ],
  ],
  [
    'refill-logs',
    'refill_logs',
    ['', '?page=2&page_size=2', '?page_size=100', '?page_size=101', '?page_size=0', '?page=1.5'],
  ],
  [
    'stats',
    'stats',
    [
      '',
      '?start_date=2020-01-01',
      '?start_date=2020-13-01',
      '?end_date=x',
      '?start_date=2999-01-01',
      '?by=model',
    ],
  ],
];

test('request logs, refill logs and stats match those of the key byte for byte, and so do their errors', async (t) => {
  const user = await createLinkedUser();
  const { apiKey } = user.account;
  for (let i = 0; i < 3; i++) await redeem(user, await createRefillCode(stack, '12.5', 1));
  await stack.startWorker();
  const messages = [{ role: 'user', content: 'hi' }];
  for (const stream of [false, true]) {
    const chat = await stack.post('/v1/chat/completions', apiKey, { model: 'demo-echo', messages, stream });
    t.is(chat.status, 200);
    await chat.text();
  }
  await waitFor('the ledger to be fully applied', async () => {
    const log = await callApi<RequestLogPage>(stack.url, apiKey, 'GET', '/users/request_logs');
    const stream = redisKeys.ledgerStream(shardOf(user.account.id));
    return log.body.total_count === 2 && (await stack.redis.xlen(stream)) === 0;
  });
  for (const [web, key, queries] of equivalentReads)
    for (const query of queries)
      await checkSameResponses(t, user, `/${web}${query}`, `/v1/users/${key}${query}`);
  t.deepEqual(await findLedgerDifferences(stack), []);
});

async function checkSameResponses(
  t: ExecutionContext,
  { client, path, account }: LinkedUser,
  web: string,
  key: string,
) {
  for (const accept of ['application/json', 'text/csv']) {
    const authorization = `Bearer ${account.apiKey}`;
    const [webResponse, keyResponse] = [
      await client.request('GET', `${path}${web}`, undefined, { accept }),
      await fetch(`${stack.url}${key}`, { headers: { authorization, accept } }),
    ];
    t.is(webResponse.status, keyResponse.status, web);
    t.is(webResponse.headers.get('content-type'), keyResponse.headers.get('content-type'));
    t.is(await webResponse.text(), await keyResponse.text(), web);
  }
}
