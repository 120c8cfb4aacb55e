import test, { type ExecutionContext } from 'ava';
import { bannedAtUnknownCodes } from '../../../shared/refills/redeem-code.ts';
import { RefillCodeStore } from '../../../shared/refills/refill-code-store.ts';
import type { RefillLogPage, RequestLogPage } from '../../../shared/contract/users.ts';
import type { RedeemedRefillCode } from '../../../shared/contract/web-accounts.ts';
import { formatRub } from '../../../shared/pricing/money.ts';
import { redisKeys, shardOf } from '../../../shared/redis/redis-keys.ts';
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

/** What a user redeems and reads of an account is what its key redeems and reads. */

let stack: TestStack;

test.before(async () => {
  stack = await startWebStack({ workers: [] });
});
test.after.always(() => stack.close());

interface Party {
  readonly client: WebClient;
  readonly account: TestAccount;
  /** Of the account in the account area. */
  readonly path: string;
  readonly userId: string;
}

async function createParty(balance = '1.5', freeRequests = 2): Promise<Party> {
  const { client, user } = await createSeparateUser(stack);
  const account = await stack.createAccount({ balance, freeRequests });
  const { id } = await linkAccount(client, account);
  return { client, account, path: `/api-accounts/${id}`, userId: user._id };
}

const redeem = <T = { error: { code: string; message: string }; detail: object[] }>(
  { client, path }: Party,
  code: unknown,
) => callWeb<T>(client, 'POST', `${path}/redeem`, { code });
const unknownCode = (i: number): string => `2222-2222-2222-2222-22${String(22 + i)}`;

// Before any worker runs.
test.serial(
  'what is redeemed is told exactly, and is in the refill logs of the very next request, while no worker runs',
  async (t) => {
    const party = await createParty();
    const code = await createRefillCode(stack, '50.000000001', 3);
    const { status, body } = await redeem<RedeemedRefillCode>(party, code.toLowerCase());
    t.is(status, 200);
    t.deepEqual(body, {
      balance_added: '50.000000001',
      free_requests_added: 3,
      balance: '51.500000001',
      total_balance_added: '51.500000001',
      free_requests: 5,
    });
    const log = await callWeb<RefillLogPage>(party.client, 'GET', `${party.path}/refill-logs`);
    t.is(log.body.total_count, 1);
    t.like(log.body.items[0], {
      refill_code_redeemed: code,
      balance_added: '50.000000001',
      free_requests_added: 3,
    });
    const events = await webStoresOf(stack).audit.list(party.userId, 10);
    t.like(events[0], {
      action: 'code-redeemed',
      accountId: party.account.id,
      outcome: 'done',
      notice: 'none',
    });
    t.false(JSON.stringify(events).includes(code));
  },
);

test('a code counts once, whether it is redeemed by the key or in the account area, also at the same time', async (t) => {
  const party = await createParty('1', 0);
  const code = await createRefillCode(stack);
  const answers = await Promise.all([
    ...Array.from({ length: 5 }, () => redeem(party, code)),
    ...Array.from({ length: 5 }, () =>
      callApi(stack.url, party.account.apiKey, 'POST', '/users/redeem', { code }),
    ),
  ]);
  t.is(answers.filter(({ status }) => status === 200).length, 1);
  for (const { body } of answers.filter(({ status }) => status !== 200))
    t.like(body, { error: { code: 'invalid_code' }, detail: [{ loc: ['body', 'code'] }] });
  t.is(formatRub((await stack.readAccount(party.account.id)).balanceNano), '11');
});

test('what is refused as a code is refused in the words of the key’s twin, and guesses of both are counted together', async (t) => {
  const [party, other] = [await createParty(), await createParty()];
  const { apiKey, id } = party.account;
  const used = await createRefillCode(stack);
  t.is((await redeem(other, used)).status, 200);
  const revoked = await createRefillCode(stack);
  await new RefillCodeStore(stack.mongo.db).revoke(revoked);
  for (const code of [used, revoked, '', 'x'.repeat(257), 7, null]) {
    const web = await redeem(party, code);
    const twin = await callApi(stack.url, apiKey, 'POST', '/users/redeem', { code });
    t.is(web.status, 422);
    t.is(twin.status, 422);
    t.deepEqual(web.body.error, twin.body.error);
    const [fault] = web.body.detail;
    t.like(fault, (twin.body.detail as object[])[0]!);
  }
  t.is(await stack.redis.exists(redisKeys.unknownCodes(id)), 0);
  for (let i = 1; i < bannedAtUnknownCodes; i++) {
    const { status, body } =
      i % 2 === 0
        ? await redeem(party, unknownCode(i))
        : await callApi(stack.url, apiKey, 'POST', '/users/redeem', { code: unknownCode(i) });
    t.is(status, 422);
    t.is(body.error.code, 'invalid_code');
  }
  t.is((await redeem(party, await createRefillCode(stack))).status, 200);
  const last = await redeem(party, unknownCode(0));
  t.is(last.status, 403);
  t.is(last.body.error.code, 'account_banned');
  t.is((await callApi(stack.url, apiKey, 'GET', '/users/profile')).status, 403);
  const shown = await callWeb<{ ban: boolean; key_active: boolean }>(party.client, 'GET', party.path);
  t.like(shown.body, { ban: true, key_active: false });
  t.is((await redeem(other, await createRefillCode(stack))).status, 200, 'another account is not affected');
});

test('of a banned account nothing is redeemed and no history is read, and the code stays unused', async (t) => {
  const party = await createParty();
  await banAccount(stack, party.account.id);
  const code = await createRefillCode(stack);
  const refused = await redeem(party, code);
  t.like(refused, { status: 403, body: { error: { code: 'account_banned' } } });
  for (const what of ['request-logs', 'refill-logs', 'stats']) {
    const answer = await callWeb(party.client, 'GET', `${party.path}/${what}`);
    t.is(answer.status, 403, what);
    t.is(answer.body.error.code, 'account_banned');
  }
  t.is((await new RefillCodeStore(stack.mongo.db).find(code))?.redeemed, null);
});

test('a code that would lift the balance above its cap stays unused', async (t) => {
  const party = await createParty('8999995');
  const code = await createRefillCode(stack);
  const { status, body } = await redeem(party, code);
  t.is(status, 422);
  t.is(body.error.code, 'validation_failed');
  t.like(body.detail, [{ loc: ['body', 'code'] }]);
  t.is((await new RefillCodeStore(stack.mongo.db).find(code))?.redeemed, null);
});

const twins: [web: string, key: string, queries: readonly string[]][] = [
  ['request-logs', 'request_logs', ['', '?page=1', '?page=2', '?page=0', '?page=x']],
  [
    'refill-logs',
    'refill_logs',
    ['', '?page=2&page_size=2', '?page_size=100', '?page_size=101', '?page_size=0', '?page=1.5'],
  ],
  [
    'stats',
    'stats',
    ['', '?start_date=2020-01-01', '?start_date=2020-13-01', '?end_date=x', '?start_date=2999-01-01'],
  ],
];

test('request logs, refill logs and stats are those of the key, byte for byte, and so are their refusals', async (t) => {
  const party = await createParty();
  const { apiKey } = party.account;
  for (let i = 0; i < 3; i++) await redeem(party, await createRefillCode(stack, '12.5', 1));
  await stack.startWorker();
  const messages = [{ role: 'user', content: 'hi' }];
  for (const stream of [false, true]) {
    const chat = await stack.post('/v1/chat/completions', apiKey, { model: 'demo-echo', messages, stream });
    t.is(chat.status, 200);
    await chat.text();
  }
  await waitFor('the ledger to be at rest', async () => {
    const log = await callApi<RequestLogPage>(stack.url, apiKey, 'GET', '/users/request_logs');
    const stream = redisKeys.ledgerStream(shardOf(party.account.id));
    return log.body.total_count === 2 && (await stack.redis.xlen(stream)) === 0;
  });
  for (const [web, key, queries] of twins)
    for (const query of queries) await checkTwins(t, party, `/${web}${query}`, `/v1/users/${key}${query}`);
  t.deepEqual(await findLedgerDifferences(stack), []);
});

async function checkTwins(t: ExecutionContext, { client, path, account }: Party, web: string, key: string) {
  const [one, other] = [
    await client.request('GET', `${path}${web}`),
    await fetch(`${stack.url}${key}`, { headers: { authorization: `Bearer ${account.apiKey}` } }),
  ];
  t.is(one.status, other.status, web);
  t.is(one.headers.get('content-type'), other.headers.get('content-type'));
  const [text, twin] = [await one.text(), await other.text()];
  t.is(text, twin, web);
}
