import test, { type ExecutionContext } from 'ava';
import { startApi } from '../../../api/server.ts';
import { findMailCode } from '../../../scripts/embedded/smtp/read-mail.ts';
import { isApiKey, maskApiKey } from '../../../shared/accounts/credentials.ts';
import type { ApiAccount } from '../../../shared/contract/web-accounts.ts';
import type {
  RegeneratedApiKey,
  RevealedApiKey,
  SensitiveActionConfirm,
} from '../../../shared/contract/web-confirmations.ts';
import type { EmailCodeRequested } from '../../../shared/contract/web-auth.ts';
import { redisKeys } from '../../../shared/redis/redis-keys.ts';
import { loadConfig } from '../../../shared/config/config.ts';
import type { ConfirmedAction } from '../../../shared/web/mail.ts';
import { callApi } from '../../support/call-api.ts';
import { useUp } from '../../support/provoke-errors.ts';
import { readCode } from '../../support/mailbox.ts';
import type { TestAccount, TestStack } from '../../support/stack.ts';
import {
  banAccount,
  callWeb,
  createSeparateUser,
  linkAccount,
  startWebStack,
} from '../../support/web-accounts.ts';
import { WebClient } from '../../support/web-client.ts';

/** Unlinking, showing and replacing a key take a code that was mailed for just that. */

let stack: TestStack;

test.before(async () => {
  stack = await startWebStack({ mail: true });
});
test.after.always(() => stack.close());

interface Party {
  readonly client: WebClient;
  readonly email: string;
  readonly address: string;
  readonly account: TestAccount;
  readonly link: ApiAccount;
}

async function createParty(): Promise<Party> {
  const { client, user, address } = await createSeparateUser(stack);
  const account = await stack.createAccount();
  return { client, email: user.email, address, account, link: await linkAccount(client, account) };
}

const codePaths: Record<ConfirmedAction, string> = {
  unlink: '/unlink/request-code',
  reveal: '/reveal/request-code',
  regenerate: '/regenerate-api-key/request-code',
};

const askForCode = <T = EmailCodeRequested>(
  { client, link }: Pick<Party, 'client' | 'link'>,
  action: ConfirmedAction,
  email: string,
) => callWeb<T>(client, 'POST', `/api-accounts/${link.id}${codePaths[action]}`, { email });

/** Has a code mailed, and reads it. */
async function getCode(party: Party, action: ConfirmedAction): Promise<SensitiveActionConfirm> {
  const { status, body } = await askForCode(party, action, party.email);
  if (status !== 201) throw new Error(`${status}: ${JSON.stringify(body)}`);
  const mail = await stack.mailbox!.waitForMail(party.email, ({ text }) => findMailCode(text) !== null);
  return { challenge_id: body.challenge_id, code: readCode(mail) };
}

/** Another code than this one. */
const wrongCode = ({ code }: SensitiveActionConfirm, by = 1): string =>
  String((Number(code) + by) % 1_000_000).padStart(6, '0');

const act = <T>({ client, link }: Pick<Party, 'client' | 'link'>, action: ConfirmedAction, body: unknown) => {
  const path = `/api-accounts/${link.id}`;
  if (action === 'unlink') return callWeb<T>(client, 'DELETE', path, body);
  if (action === 'reveal') return callWeb<T>(client, 'POST', `${path}/reveal`, body);
  return callWeb<T>(client, 'PUT', `${path}/regenerate-api-key`, body);
};

const list = async ({ client }: Pick<Party, 'client'>) =>
  (await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts')).body;
const statusOfKey = async (apiKey: string): Promise<number> =>
  (await callApi(stack.url, apiKey, 'GET', '/users/profile')).status;

async function checkRefused(t: ExecutionContext, party: Party, action: ConfirmedAction, body: unknown) {
  const { status, body: answer } = await act<{ error: { code: string }; detail: { loc: string[] }[] }>(
    party,
    action,
    body,
  );
  t.is(status, 422);
  t.is(answer.error.code, 'invalid_code');
  t.deepEqual(answer.detail[0]!.loc, ['body', 'code']);
}

test('a mailed code unlinks the account: its key goes on working, and another user can link it', async (t) => {
  const party = await createParty();
  const { status, body } = await act(party, 'unlink', await getCode(party, 'unlink'));
  t.is(status, 204);
  t.is(body, null);
  t.deepEqual(await list(party), []);
  t.is((await callWeb(party.client, 'GET', `/api-accounts/${party.link.id}`)).status, 404);
  t.is(await statusOfKey(party.account.apiKey), 200);
  const next = await linkAccount((await createSeparateUser(stack)).client, party.account);
  t.is(next.user_balance_id, party.account.id);
});

test('a mailed code shows the key, once', async (t) => {
  const party = await createParty();
  const code = await getCode(party, 'reveal');
  const { status, body, headers } = await act<RevealedApiKey>(party, 'reveal', code);
  t.is(status, 200);
  t.deepEqual(body, { api_key: party.account.apiKey });
  t.is(headers.get('cache-control'), 'no-store');
  await checkRefused(t, party, 'reveal', code);
});

test('a mailed code replaces the key: the new one works and the old one is dead from the answer on', async (t) => {
  const party = await createParty();
  t.is(await statusOfKey(party.account.apiKey), 200);
  const { status, body } = await act<RegeneratedApiKey>(
    party,
    'regenerate',
    await getCode(party, 'regenerate'),
  );
  t.is(status, 200);
  t.true(isApiKey(body.api_key));
  t.deepEqual(body, { api_key: body.api_key, key_masked: maskApiKey(body.api_key) });
  t.is(await statusOfKey(party.account.apiKey), 401);
  t.is(await statusOfKey(body.api_key), 200);
  const [shown] = await list(party);
  t.deepEqual(shown, { ...party.link, key_id: shown!.key_id!, key_masked: body.key_masked });
  t.not(shown!.key_id, party.link.key_id);
  const revealed = await act<RevealedApiKey>(party, 'reveal', await getCode(party, 'reveal'));
  t.deepEqual(revealed.body, { api_key: body.api_key });
});

test('a code is good for its action on its account by its user alone, and trying it elsewhere does not use it up', async (t) => {
  const [party, stranger] = [await createParty(), await createParty()];
  const second = { ...party, link: await linkAccount(party.client, await stack.createAccount()) };
  const code = await getCode(party, 'reveal');
  for (let round = 0; round < 3; round++) {
    for (const elsewhere of [code, { ...code, code: wrongCode(code) }]) {
      await checkRefused(t, party, 'unlink', elsewhere);
      await checkRefused(t, party, 'regenerate', elsewhere);
      await checkRefused(t, second, 'reveal', elsewhere);
      await checkRefused(t, stranger, 'reveal', elsewhere);
      const signIn = await callWeb(new WebClient(stack.url), 'POST', '/auth/verify-code', elsewhere);
      t.is(signIn.body.error.code, 'invalid_code');
    }
  }
  t.is((await list(party)).length, 2);
  t.is((await act(party, 'reveal', code)).status, 200);
});

test('a sign-in code confirms nothing', async (t) => {
  const party = await createParty();
  const requested = await callWeb<EmailCodeRequested>(party.client, 'POST', '/auth/request-code', {
    email: party.email,
  });
  const mail = await stack.mailbox!.waitForMail(party.email, ({ text }) => findMailCode(text) !== null);
  const code = { challenge_id: requested.body.challenge_id, code: readCode(mail) };
  for (const action of ['unlink', 'reveal', 'regenerate'] as const)
    await checkRefused(t, party, action, code);
});

test('a code is mailed to the user’s own address alone, however it is written; for another one a 422 names the field', async (t) => {
  const party = await createParty();
  for (const action of ['unlink', 'reveal', 'regenerate'] as const) {
    const refused = await askForCode<{ error: { code: string }; detail: object[] }>(
      party,
      action,
      'other@example.com',
    );
    t.is(refused.status, 422);
    t.is(refused.body.error.code, 'validation_failed');
    t.like(refused.body.detail, [{ loc: ['body', 'email'] }]);
  }
  const own = await askForCode(party, 'reveal', `  ${party.email.toUpperCase()} `);
  t.is(own.status, 201);
  t.deepEqual(Object.keys(own.body), ['challenge_id', 'expires_at']);
  await stack.mailbox!.waitForMail(party.email, ({ text }) => findMailCode(text) !== null);
  t.false(stack.mailbox!.received.some(({ recipient }) => recipient === 'other@example.com'));
});

test('a code bears four wrong attempts, and is worth nothing after the fifth', async (t) => {
  const party = await createParty();
  const [kept, lost] = [await getCode(party, 'reveal'), await getCode(party, 'reveal')];
  for (let i = 1; i <= 4; i++) {
    for (const code of [kept, lost])
      await checkRefused(t, party, 'reveal', { ...code, code: wrongCode(code, i) });
  }
  await checkRefused(t, party, 'reveal', { ...lost, code: 'x'.repeat(32) });
  t.is((await act(party, 'reveal', kept)).status, 200);
  await checkRefused(t, party, 'reveal', lost);
});

test('a code expires after ten minutes', async (t) => {
  const party = await createParty();
  const before = Date.now();
  const { body } = await askForCode(party, 'reveal', party.email);
  const mail = await stack.mailbox!.waitForMail(party.email, ({ text }) => findMailCode(text) !== null);
  const lifeMs = new Date(body.expires_at).getTime() - before;
  t.true(lifeMs >= 600_000 && lifeMs < 660_000);
  const key = redisKeys.emailCode(body.challenge_id);
  const ttlMs = await stack.redis.pttl(key);
  t.true(ttlMs > 500_000 && ttlMs <= 600_000);
  // As if they had gone.
  await stack.redis.pexpire(key, 0);
  await checkRefused(t, party, 'reveal', { challenge_id: body.challenge_id, code: readCode(mail) });
});

test('a confirmation that is no confirmation is a 422 that names the field, and uses up no attempt', async (t) => {
  const party = await createParty();
  const right = await getCode(party, 'unlink');
  for (const [field, value] of [
    ['challenge_id', 'no uuid'],
    ['challenge_id', undefined],
    ['code', ''],
    ['code', 'x'.repeat(33)],
    ['code', 123456],
    ['code', undefined],
  ] as const) {
    const { status, body } = await act<{ error: { code: string }; detail: object[] }>(party, 'unlink', {
      ...right,
      [field]: value,
    });
    t.is(status, 422);
    t.is(body.error.code, 'validation_failed');
    t.like(body.detail, [{ loc: ['body', field] }]);
  }
  t.is((await act(party, 'unlink', right)).status, 204);
});

test('of ten parallel confirmations with one code one counts', async (t) => {
  const party = await createParty();
  const code = await getCode(party, 'regenerate');
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => act<RegeneratedApiKey>(party, 'regenerate', code)),
  );
  const done = answers.filter(({ status }) => status === 200);
  t.is(done.length, 1);
  t.is(answers.filter(({ status }) => status === 422).length, 9);
  t.is(await statusOfKey(done[0]!.body.api_key), 200);
});

test('a code that shows or replaces the key is good for nothing once the key was replaced, and one that unlinks still is', async (t) => {
  const party = await createParty();
  const [reveal, regenerate] = [await getCode(party, 'reveal'), await getCode(party, 'regenerate')];
  const unlink = await getCode(party, 'unlink');
  const { apiKey } = party.account;
  t.is((await callApi(stack.url, apiKey, 'PUT', '/users/regenerate_api_key')).status, 200);
  await checkRefused(t, party, 'reveal', reveal);
  await checkRefused(t, party, 'regenerate', regenerate);
  t.is((await act(party, 'unlink', unlink)).status, 204);
});

test('of two parallel replacements with a code each one is done, and its key works', async (t) => {
  const party = await createParty();
  const codes = [await getCode(party, 'regenerate'), await getCode(party, 'regenerate')];
  const answers = await Promise.all(codes.map((code) => act<RegeneratedApiKey>(party, 'regenerate', code)));
  t.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 422],
  );
  t.is(await statusOfKey(answers.find(({ status }) => status === 200)!.body.api_key), 200);
});

test('of two parallel unlinks with a code each one is a 204 and the other finds no account', async (t) => {
  const party = await createParty();
  const codes = [await getCode(party, 'unlink'), await getCode(party, 'unlink')];
  const answers = await Promise.all(codes.map((code) => act(party, 'unlink', code)));
  t.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [204, 404],
  );
});

test('where keys cannot be shown, no code is mailed for it and the request is a 404; the other actions go on', async (t) => {
  const config = loadConfig({ ...stack.env, REVEAL: 'off' });
  const api = await startApi(config, stack.env, stack.log);
  t.teardown(() => api.stop());
  const party = await createParty();
  const client = new WebClient(api.url, { headers: { 'x-forwarded-for': '192.0.2.7' } });
  for (const [name, value] of party.client.cookies) client.cookies.set(name, value);
  client.csrfToken = party.client.csrfToken;
  const elsewhere = { ...party, client };
  const code = await getCode(party, 'reveal');
  for (const answer of [
    await askForCode<{ error: { code: string; message: string } }>(elsewhere, 'reveal', party.email),
    await act<{ error: { code: string; message: string } }>(elsewhere, 'reveal', code),
  ]) {
    t.is(answer.status, 404);
    t.is(answer.body.error.code, 'not_found');
    t.regex(answer.body.error.message, /keeps no copy of the key/);
  }
  // The next mail with a code is that of the next action: none went out before it.
  const unlink = await getCode(elsewhere, 'unlink');
  t.is((await act(elsewhere, 'unlink', unlink)).status, 204);
});

test('the key of a banned account is not replaced, nor is a code mailed for it; the account can be unlinked', async (t) => {
  const party = await createParty();
  const code = await getCode(party, 'regenerate');
  await banAccount(stack, party.account.id);
  for (const answer of [
    await askForCode<{ error: { code: string } }>(party, 'regenerate', party.email),
    await act<{ error: { code: string } }>(party, 'regenerate', code),
  ]) {
    t.is(answer.status, 403);
    t.is(answer.body.error.code, 'account_banned');
  }
  const unlink = await getCode(party, 'unlink');
  t.is((await act(party, 'unlink', unlink)).status, 204);
});

test('ten codes an hour are mailed to a mailbox, and the next is told when to come back', async (t) => {
  const party = await createParty();
  for (let i = 0; i < 10; i++) t.is((await askForCode(party, 'reveal', party.email)).status, 201);
  const refused = await askForCode<{ error: { code: string } }>(party, 'unlink', party.email);
  t.is(refused.status, 429);
  t.is(refused.body.error.code, 'too_many_attempts');
  const retryAfter = Number(refused.headers.get('retry-after'));
  t.true(retryAfter > 3_000 && retryAfter <= 3_600);
});

test('where too many wrong codes were entered from a network, a right one is not tried', async (t) => {
  const party = await createParty();
  const right = await getCode(party, 'reveal');
  await useUp(stack, 'wrong-codes-network', party.address);
  const refused = await act<{ error: { code: string } }>(party, 'reveal', right);
  t.is(refused.status, 429);
  t.is(refused.body.error.code, 'too_many_attempts');
});

test('the audit log holds no key and no challenge', async (t) => {
  const party = await createParty();
  const code = await getCode(party, 'regenerate');
  const { body } = await act<RegeneratedApiKey>(party, 'regenerate', code);
  const events = await stack.mongo.db.collection('web_audit').find({}).toArray();
  t.true(events.length > 0);
  const text = JSON.stringify(events);
  for (const secret of [body.api_key, party.account.apiKey, code.challenge_id])
    t.false(text.includes(secret));
});
