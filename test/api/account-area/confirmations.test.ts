import test, { type ExecutionContext } from 'ava';
import { findMailCode } from '../../../scripts/embedded/smtp/read-mail.ts';
import { isApiKey, maskApiKey } from '../../../shared/accounts/credentials.ts';
import type { ApiAccount } from '../../../api/contract/web-accounts.ts';
import type {
  RegeneratedApiKey,
  RevealedApiKey,
  SensitiveActionConfirm,
} from '../../../api/contract/web-confirmations.ts';
import type { EmailCodeRequested } from '../../../api/contract/web-auth.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { loadConfig } from '../../../shared/platform/config/config.ts';
import type { ConfirmedAction } from '../../../shared/account-area/mail.ts';
import { callApi } from '../../support/call-api.ts';
import { exhaustLimit } from '../../support/provoke-errors.ts';
import { readCode } from '../../support/mailbox.ts';
import { startApiOf } from '../../support/other-api.ts';
import type { TestAccount, TestStack } from '../../support/stack.ts';
import {
  banAccount,
  callWeb,
  createSeparateUser,
  linkAccount,
  startWebStack,
} from '../../support/web-accounts.ts';
import { WebClient } from '../../support/web-client.ts';

/** To unlink an account, or to reveal or replace its key, a user needs a code mailed for that action. */

let stack: TestStack;

test.before(async () => {
  stack = await startWebStack({ mail: true });
});
test.after.always(() => stack.close());

interface LinkedUser {
  readonly client: WebClient;
  readonly email: string;
  readonly address: string;
  readonly account: TestAccount;
  readonly link: ApiAccount;
}

async function createLinkedUser(): Promise<LinkedUser> {
  const { client, user, address } = await createSeparateUser(stack);
  const account = await stack.createAccount();
  return { client, email: user.email, address, account, link: await linkAccount(client, account) };
}

const codePaths: Record<ConfirmedAction, string> = {
  unlink: '/unlink/request-code',
  reveal: '/reveal/request-code',
  regenerate: '/regenerate-api-key/request-code',
};

const requestCode = <T = EmailCodeRequested>(
  { client, link }: Pick<LinkedUser, 'client' | 'link'>,
  action: ConfirmedAction,
  email: string,
) => callWeb<T>(client, 'POST', `/api-accounts/${link.id}${codePaths[action]}`, { email });

/** Requests a code, and reads it from the mail. */
async function getMailedCode(user: LinkedUser, action: ConfirmedAction): Promise<SensitiveActionConfirm> {
  const { status, body } = await requestCode(user, action, user.email);
  if (status !== 201) throw new Error(`${status}: ${JSON.stringify(body)}`);
  const mail = await stack.mailbox!.waitForMail(user.email, ({ text }) => findMailCode(text) !== null);
  return { challenge_id: body.challenge_id, code: readCode(mail) };
}

/** A different code. */
const wrongCode = ({ code }: SensitiveActionConfirm, by = 1): string =>
  String((Number(code) + by) % 1_000_000).padStart(6, '0');

const act = <T>(
  { client, link }: Pick<LinkedUser, 'client' | 'link'>,
  action: ConfirmedAction,
  body: unknown,
) => {
  const path = `/api-accounts/${link.id}`;
  if (action === 'unlink') return callWeb<T>(client, 'DELETE', path, body);
  if (action === 'reveal') return callWeb<T>(client, 'POST', `${path}/reveal`, body);
  return callWeb<T>(client, 'PUT', `${path}/regenerate-api-key`, body);
};

const list = async ({ client }: Pick<LinkedUser, 'client'>) =>
  (await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts')).body;
const statusOfKey = async (apiKey: string): Promise<number> =>
  (await callApi(stack.url, apiKey, 'GET', '/users/profile')).status;

async function checkRefused(t: ExecutionContext, user: LinkedUser, action: ConfirmedAction, body: unknown) {
  const { status, body: response } = await act<{ error: { code: string }; detail: { loc: string[] }[] }>(
    user,
    action,
    body,
  );
  t.is(status, 422);
  t.is(response.error.code, 'invalid_code');
  t.deepEqual(response.detail[0]!.loc, ['body', 'code']);
}

test('a mailed code unlinks the account: its key keeps working, and another user can link it', async (t) => {
  const user = await createLinkedUser();
  const { status, body } = await act(user, 'unlink', await getMailedCode(user, 'unlink'));
  t.is(status, 204);
  t.is(body, null);
  t.deepEqual(await list(user), []);
  t.is((await callWeb(user.client, 'GET', `/api-accounts/${user.link.id}`)).status, 404);
  t.is(await statusOfKey(user.account.apiKey), 200);
  const next = await linkAccount((await createSeparateUser(stack)).client, user.account);
  t.is(next.user_balance_id, user.account.id);
});

test('a mailed code reveals the key, once', async (t) => {
  const user = await createLinkedUser();
  const code = await getMailedCode(user, 'reveal');
  const { status, body, headers } = await act<RevealedApiKey>(user, 'reveal', code);
  t.is(status, 200);
  t.deepEqual(body, { api_key: user.account.apiKey });
  t.is(headers.get('cache-control'), 'no-store');
  await checkRefused(t, user, 'reveal', code);
});

test('a mailed code replaces the key: the new one works, and the old one is invalid once the response has been sent', async (t) => {
  const user = await createLinkedUser();
  t.is(await statusOfKey(user.account.apiKey), 200);
  const { status, body } = await act<RegeneratedApiKey>(
    user,
    'regenerate',
    await getMailedCode(user, 'regenerate'),
  );
  t.is(status, 200);
  t.true(isApiKey(body.api_key));
  t.deepEqual(body, { api_key: body.api_key, key_masked: maskApiKey(body.api_key) });
  t.is(await statusOfKey(user.account.apiKey), 401);
  t.is(await statusOfKey(body.api_key), 200);
  const [shown] = await list(user);
  t.deepEqual(shown, { ...user.link, key_id: shown!.key_id!, key_masked: body.key_masked });
  t.not(shown!.key_id, user.link.key_id);
  const revealed = await act<RevealedApiKey>(user, 'reveal', await getMailedCode(user, 'reveal'));
  t.deepEqual(revealed.body, { api_key: body.api_key });
});

test('a code is valid only for its action, account and user, and using it for others does not make it invalid', async (t) => {
  const [user, otherUser] = [await createLinkedUser(), await createLinkedUser()];
  const second = { ...user, link: await linkAccount(user.client, await stack.createAccount()) };
  const code = await getMailedCode(user, 'reveal');
  for (let round = 0; round < 3; round++) {
    for (const elsewhere of [code, { ...code, code: wrongCode(code) }]) {
      await checkRefused(t, user, 'unlink', elsewhere);
      await checkRefused(t, user, 'regenerate', elsewhere);
      await checkRefused(t, second, 'reveal', elsewhere);
      await checkRefused(t, otherUser, 'reveal', elsewhere);
      const signIn = await callWeb(new WebClient(stack.url), 'POST', '/auth/verify-code', elsewhere);
      t.is(signIn.body.error.code, 'invalid_code');
    }
  }
  t.is((await list(user)).length, 2);
  t.is((await act(user, 'reveal', code)).status, 200);
});

test('a sign-in code does not confirm an action', async (t) => {
  const user = await createLinkedUser();
  const requested = await callWeb<EmailCodeRequested>(user.client, 'POST', '/auth/request-code', {
    email: user.email,
  });
  const mail = await stack.mailbox!.waitForMail(user.email, ({ text }) => findMailCode(text) !== null);
  const code = { challenge_id: requested.body.challenge_id, code: readCode(mail) };
  for (const action of ['unlink', 'reveal', 'regenerate'] as const) await checkRefused(t, user, action, code);
});

test('a code is mailed only to the user’s own address, in any spelling; another address is a 422 for that field', async (t) => {
  const user = await createLinkedUser();
  for (const action of ['unlink', 'reveal', 'regenerate'] as const) {
    const rejection = await requestCode<{ error: { code: string }; detail: object[] }>(
      user,
      action,
      'other@example.com',
    );
    t.is(rejection.status, 422);
    t.is(rejection.body.error.code, 'validation_failed');
    t.like(rejection.body.detail, [{ loc: ['body', 'email'] }]);
  }
  const ownAddress = await requestCode(user, 'reveal', `  ${user.email.toUpperCase()} `);
  t.is(ownAddress.status, 201);
  t.deepEqual(Object.keys(ownAddress.body), ['challenge_id', 'expires_at']);
  await stack.mailbox!.waitForMail(user.email, ({ text }) => findMailCode(text) !== null);
  t.false(stack.mailbox!.received.some(({ recipient }) => recipient === 'other@example.com'));
});

test('a code survives four wrong attempts, and is invalid after the fifth', async (t) => {
  const user = await createLinkedUser();
  const [usable, exhausted] = [await getMailedCode(user, 'reveal'), await getMailedCode(user, 'reveal')];
  for (let i = 1; i <= 4; i++) {
    for (const code of [usable, exhausted])
      await checkRefused(t, user, 'reveal', { ...code, code: wrongCode(code, i) });
  }
  await checkRefused(t, user, 'reveal', { ...exhausted, code: 'x'.repeat(32) });
  t.is((await act(user, 'reveal', usable)).status, 200);
  await checkRefused(t, user, 'reveal', exhausted);
});

test('a code expires after ten minutes', async (t) => {
  const user = await createLinkedUser();
  const before = Date.now();
  const { body } = await requestCode(user, 'reveal', user.email);
  const mail = await stack.mailbox!.waitForMail(user.email, ({ text }) => findMailCode(text) !== null);
  const lifeMs = new Date(body.expires_at).getTime() - before;
  t.true(lifeMs >= 600_000 && lifeMs < 660_000);
  const key = redisKeys.emailCode(body.challenge_id);
  const ttlMs = await stack.redis.pttl(key);
  t.true(ttlMs > 500_000 && ttlMs <= 600_000);
  // Simulates the expiry.
  await stack.redis.pexpire(key, 0);
  await checkRefused(t, user, 'reveal', { challenge_id: body.challenge_id, code: readCode(mail) });
});

test('a malformed confirmation is a 422 for the field, and is not an attempt at the code', async (t) => {
  const user = await createLinkedUser();
  const right = await getMailedCode(user, 'unlink');
  for (const [field, value] of [
    ['challenge_id', 'no uuid'],
    ['challenge_id', undefined],
    ['code', ''],
    ['code', 'x'.repeat(33)],
    ['code', 123456],
    ['code', undefined],
  ] as const) {
    const { status, body } = await act<{ error: { code: string }; detail: object[] }>(user, 'unlink', {
      ...right,
      [field]: value,
    });
    t.is(status, 422);
    t.is(body.error.code, 'validation_failed');
    t.like(body.detail, [{ loc: ['body', field] }]);
  }
  t.is((await act(user, 'unlink', right)).status, 204);
});

test('only one of ten parallel confirmations with the same code succeeds', async (t) => {
  const user = await createLinkedUser();
  const code = await getMailedCode(user, 'regenerate');
  const responses = await Promise.all(
    Array.from({ length: 10 }, () => act<RegeneratedApiKey>(user, 'regenerate', code)),
  );
  const done = responses.filter(({ status }) => status === 200);
  t.is(done.length, 1);
  t.is(responses.filter(({ status }) => status === 422).length, 9);
  t.is(await statusOfKey(done[0]!.body.api_key), 200);
});

test('replacing the key invalidates codes that reveal or replace the key, but not codes that unlink the account', async (t) => {
  const user = await createLinkedUser();
  const [reveal, regenerate] = [await getMailedCode(user, 'reveal'), await getMailedCode(user, 'regenerate')];
  const unlink = await getMailedCode(user, 'unlink');
  const { apiKey } = user.account;
  t.is((await callApi(stack.url, apiKey, 'PUT', '/users/regenerate_api_key')).status, 200);
  await checkRefused(t, user, 'reveal', reveal);
  await checkRefused(t, user, 'regenerate', regenerate);
  t.is((await act(user, 'unlink', unlink)).status, 204);
});

test('of two parallel replacements with different codes one succeeds, and its key works', async (t) => {
  const user = await createLinkedUser();
  const codes = [await getMailedCode(user, 'regenerate'), await getMailedCode(user, 'regenerate')];
  const responses = await Promise.all(codes.map((code) => act<RegeneratedApiKey>(user, 'regenerate', code)));
  t.deepEqual(
    responses.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 422],
  );
  t.is(await statusOfKey(responses.find(({ status }) => status === 200)!.body.api_key), 200);
});

test('of two parallel unlinks with different codes one is a 204, and the other a 404', async (t) => {
  const user = await createLinkedUser();
  const codes = [await getMailedCode(user, 'unlink'), await getMailedCode(user, 'unlink')];
  const responses = await Promise.all(codes.map((code) => act(user, 'unlink', code)));
  t.deepEqual(
    responses.map(({ status }) => status).toSorted((a, b) => a - b),
    [204, 404],
  );
});

test('if revealing keys is turned off, requesting it is a 404 and no code is mailed, and the other actions still work', async (t) => {
  const config = loadConfig({ ...stack.env, REVEAL: 'off' });
  const api = await startApiOf(stack, config);
  t.teardown(() => api.stop());
  const user = await createLinkedUser();
  const client = new WebClient(api.url, { headers: { 'x-forwarded-for': '192.0.2.7' } });
  for (const [name, value] of user.client.cookies) client.cookies.set(name, value);
  client.csrfToken = user.client.csrfToken;
  const elsewhere = { ...user, client };
  const code = await getMailedCode(user, 'reveal');
  for (const response of [
    await requestCode<{ error: { code: string; message: string } }>(elsewhere, 'reveal', user.email),
    await act<{ error: { code: string; message: string } }>(elsewhere, 'reveal', code),
  ]) {
    t.is(response.status, 404);
    t.is(response.body.error.code, 'not_found');
    t.regex(response.body.error.message, /does not store keys in a form that can be shown/);
  }
  // Mails arrive in order, and the next one has the code that unlinks: so no code to reveal the key was mailed.
  const unlink = await getMailedCode(elsewhere, 'unlink');
  t.is((await act(elsewhere, 'unlink', unlink)).status, 204);
});

test('the key of a banned account cannot be replaced, and no code is mailed for it, but the account can be unlinked', async (t) => {
  const user = await createLinkedUser();
  const code = await getMailedCode(user, 'regenerate');
  await banAccount(stack, user.account.id);
  for (const response of [
    await requestCode<{ error: { code: string } }>(user, 'regenerate', user.email),
    await act<{ error: { code: string } }>(user, 'regenerate', code),
  ]) {
    t.is(response.status, 403);
    t.is(response.body.error.code, 'account_banned');
  }
  const unlink = await getMailedCode(user, 'unlink');
  t.is((await act(user, 'unlink', unlink)).status, 204);
});

test('at most ten codes an hour are mailed to a mailbox, and the next request is rejected with a retry-after', async (t) => {
  const user = await createLinkedUser();
  for (let i = 0; i < 10; i++) t.is((await requestCode(user, 'reveal', user.email)).status, 201);
  const rejection = await requestCode<{ error: { code: string } }>(user, 'unlink', user.email);
  t.is(rejection.status, 429);
  t.is(rejection.body.error.code, 'too_many_attempts');
  const retryAfter = Number(rejection.headers.get('retry-after'));
  t.true(retryAfter > 3_000 && retryAfter <= 3_600);
});

test('after too many wrong codes from a network, even a right one is rejected', async (t) => {
  const user = await createLinkedUser();
  const right = await getMailedCode(user, 'reveal');
  await exhaustLimit(stack, 'wrong-codes-network', user.address);
  const rejection = await act<{ error: { code: string } }>(user, 'reveal', right);
  t.is(rejection.status, 429);
  t.is(rejection.body.error.code, 'too_many_attempts');
});

test('the audit log contains no key and no challenge', async (t) => {
  const user = await createLinkedUser();
  const code = await getMailedCode(user, 'regenerate');
  const { body } = await act<RegeneratedApiKey>(user, 'regenerate', code);
  const events = await stack.mongo.db.collection('web_audit').find({}).toArray();
  t.true(events.length > 0);
  const text = JSON.stringify(events);
  for (const secret of [body.api_key, user.account.apiKey, code.challenge_id]) t.false(text.includes(secret));
});
