import test from 'ava';
import type { ChangeContext } from '../../../scripts/admin/command.ts';
import { openTrail } from '../../../scripts/admin/open-trail.ts';
import { userVerbs } from '../../../scripts/admin/user.ts';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { AuditStore } from '../../../shared/account-area/audit-store.ts';
import { readCode } from '../../support/mailbox.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createWebUser, WebClient, webStoresOf } from '../../support/web-client.ts';

/** The commands with which support helps users of the account area, run as in a shell. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ mail: true, env: { WEB_CAPTCHA: 'off' } });
});
test.after.always(() => stack?.close());

interface UserDetails {
  readonly id: string;
  readonly email: string;
  readonly banned: boolean;
  readonly accounts: { readonly id: string }[];
  readonly sessions: { readonly id: string }[];
  readonly events: {
    readonly action: string;
    readonly outcome: string;
    readonly request_id: string | null;
    readonly grant: string | null;
  }[];
  readonly grant: { readonly refused: string | null } | null;
}

const admin = <T = UserDetails>(...args: string[]) => readAdmin<T>(stack.env, 'user', ...args);

async function runRefused(...args: string[]): Promise<{ exitCode: number; reason: string }> {
  const { exitCode, stderr } = await runAdmin(stack.env, 'user', ...args);
  return { exitCode, reason: stderr.split('\n')[0]! };
}

const statusOf = async (client: WebClient) => (await client.request('GET', '/auth/me')).status;

/** Signs in as the page does. @returns the response to the code */
async function tryToSignIn(client: WebClient, email: string): Promise<Response> {
  const codeResponse = await client.request('POST', '/auth/request-code', { email, purpose: 'login' });
  const { challenge_id } = (await codeResponse.json()) as { challenge_id: string };
  const code = readCode(await stack.mailbox!.waitForMail(email));
  return await client.request('POST', '/auth/verify-code', { challenge_id, code, remember_me: false });
}

test('a user is shown with the sign-up grant, or with the reason why there was none', async (t) => {
  const show = async (email: string) => {
    const { client } = await createWebUser(stack, email);
    t.is((await admin('show', email)).grant, null);
    const created = await client.request('POST', '/api-accounts/first', {});
    const { account } = (await created.json()) as { account: { user_balance_id: string } };
    const grantOf = (shown: UserDetails) =>
      shown.events.find(({ action }) => action === 'account-created')?.grant;
    const shown = await waitFor('the end of the event', async () => {
      const current = await admin('show', email);
      return (grantOf(current) ?? null) === null ? undefined : current;
    });
    return { ...shown, accountId: account.user_balance_id, eventGrant: grantOf(shown) };
  };
  const granted = await show('granted@example.com');
  t.like(granted.grant, { refused: null, account: granted.accountId, balance: 0, free_requests: 10 });
  t.is(granted.eventGrant, 'granted');
  const refused = await show('refused@mailinator.com');
  t.like(refused.grant, { refused: 'disposable_email', account: null, balance: 0, free_requests: 0 });
  t.is(refused.eventGrant, 'disposable_email');
});

test('a user is shown by id or address, with masked keys, balances, sessions and recent events', async (t) => {
  const { client, user, sessionId } = await createWebUser(stack, 'shown@example.com');
  const { id, apiKey } = await stack.createAccount({ balance: '12.5', freeRequests: 3 });
  const linked = await client.request('POST', '/api-accounts/link', { api_key: apiKey, label: 'Work' });
  t.is(linked.status, 201);
  const { id: link, key_masked: key } = (await linked.json()) as { id: number; key_masked: string };

  const shown = await admin('show', 'Shown@Example.com');
  t.like(shown, { id: user._id, email: 'shown@example.com', banned: false, ban_reason: null });
  const account = {
    id,
    link,
    label: 'Work',
    primary: true,
    key,
    balance: 12.5,
    free_requests: 3,
    banned: false,
    account_name: null,
  };
  t.deepEqual(shown.accounts, [account]);
  t.like(shown.sessions, [{ id: sessionId, device: 'Firefox, Linux', address_created: '127.0.0.1' }]);
  t.like(shown.events, [{ action: 'account-linked', account: id, label: 'Work', address: '127.0.0.1' }]);
  t.truthy(shown.events[0]!.request_id);
  t.deepEqual(await admin('show', user._id), shown);

  const { stdout: table } = await runAdmin(stack.env, 'user', 'show', user._id);
  t.true(table.includes('accounts:') && table.includes(key), table);
  t.false(table.includes(apiKey));
  const { stdout: list } = await runAdmin(stack.env, 'user', 'list');
  for (const column of ['id', 'email', 'created at', 'banned']) t.true(list.includes(column), column);
  t.notRegex(list, /language|ban reason/, 'rarely needed fields are only in JSON');
  const rows = await admin<UserDetails[]>('list');
  t.like(
    rows.find((row) => row.id === user._id),
    { email: 'shown@example.com', timezone: 'UTC', language: 'ru', last_login_at: null },
  );
});

test("revoking a user's sessions signs the user out everywhere immediately and is recorded in the audit log", async (t) => {
  const email = 'revoked@example.com';
  const devices = [await createWebUser(stack, email), await createWebUser(stack, email)];
  const { client: other } = await createWebUser(stack, 'untouched@example.com');
  t.like(await admin('revoke-sessions', email), { email, sessions_ended: 2 });
  for (const { client } of devices) {
    t.is(await statusOf(client), 401);
    t.is((await client.request('POST', '/auth/refresh')).status, 401);
  }
  t.is(await statusOf(other), 200);
  t.like((await admin('show', email)).events, [
    { action: 'sessions-revoked', outcome: 'done', request_id: null },
  ]);
});

test('a ban ends sessions immediately and rejects a correct code with 403; API keys still work; an unban restores sign-in', async (t) => {
  const email = 'banned@example.com';
  const { client, user } = await createWebUser(stack, email);
  const { apiKey } = await stack.createAccount();
  await client.request('POST', '/api-accounts/link', { api_key: apiKey });
  t.like(await runRefused('ban', email), {
    exitCode: 2,
    reason: '--reason is required, for example --reason "stolen mailbox".',
  });
  t.is(await statusOf(client), 200);

  const banned = { id: user._id, banned: true, ban_reason: 'stolen mailbox' };
  t.like(await admin('ban', email, '--reason', 'stolen mailbox'), { ...banned, sessions_ended: 1 });
  t.like(await admin('show', email), { ...banned, sessions: [] });
  t.is(await statusOf(client), 401);
  t.is((await client.request('POST', '/auth/refresh')).status, 401);
  await stack.mailbox!.waitForMail(email); // The notice about the link.
  const refused = await tryToSignIn(new WebClient(stack.url), email);
  t.is(refused.status, 403);
  t.like(await refused.json(), { error: { code: 'account_banned' } });
  const headers = { authorization: `Bearer ${apiKey}` };
  t.is((await fetch(`${stack.url}/v1/users/profile`, { headers })).status, 200);

  t.like(await admin('unban', email), { banned: false, ban_reason: null, was_banned: true });
  t.is((await tryToSignIn(new WebClient(stack.url), email)).status, 200);
  const { events } = await admin('show', email);
  t.deepEqual(
    events.map(({ action }) => action),
    ['signed-in', 'user-unbanned', 'sign-in-refused', 'user-banned', 'account-linked'],
  );
});

test('banning again changes the reason only if one is given, and unbanning a user who is not banned changes nothing', async (t) => {
  const { _id: id } = (await createWebUser(stack, 'twice@example.com')).user;
  t.like(await admin('unban', id), { banned: false, was_banned: false });
  t.like(await admin('ban', id, '--reason', 'first'), { ban_reason: 'first', was_already_banned: false });
  const repeated = { ban_reason: 'first', was_already_banned: true, sessions_ended: 0 };
  t.like(await admin('ban', id), repeated);
  t.like(await admin('ban', id, '--reason', 'second'), { ...repeated, ban_reason: 'second' });
  const actions = async (...options: string[]) =>
    (await admin('show', id, ...options)).events.map(({ action }) => action);
  t.deepEqual(await actions(), ['user-banned', 'sessions-revoked', 'user-banned']);
  t.deepEqual(await actions('--events', '1'), ['user-banned']);
  t.is((await runAdmin(stack.env, 'user', 'show', id, '--events', '1001')).exitCode, 2);
});

test('if support unlinks an account, its user gets a mail, and anyone with the key can link the account', async (t) => {
  const attacker = await createWebUser(stack, 'thief@example.com');
  const owner = await createWebUser(stack, 'owner@example.com');
  const { id, apiKey } = await stack.createAccount();
  const link = (client: WebClient) =>
    client.request('POST', '/api-accounts/link', { api_key: apiKey, label: 'Loot' });
  t.is((await link(attacker.client)).status, 201);
  await stack.mailbox!.waitForMail('thief@example.com');
  t.is((await link(owner.client)).status, 409);

  // The user knows the account by the number shown in the account area.
  const [shown] = (await (await attacker.client.request('GET', '/api-accounts')).json()) as { id: number }[];
  const owned = { id, link: shown!.id, user_id: attacker.user._id, user_email: 'thief@example.com' };
  t.like(await readAdmin<object>(stack.env, 'account', 'show', String(shown!.id)), owned);
  const unlinked = { id, label: 'Loot', user_id: attacker.user._id, email: 'thief@example.com' };
  t.deepEqual(await admin<object>('unlink', String(shown!.id)), unlinked);
  t.like(await readAdmin<object>(stack.env, 'account', 'show', id), {
    link: null,
    user_id: null,
    user_email: null,
  });
  const { subject, text } = await stack.mailbox!.waitForMail('thief@example.com');
  t.is(subject, 'Аккаунт отвязан');
  t.regex(text!.replaceAll(/\s+/g, ' '), /Поддержка отвязала аккаунт «Loot»/);
  t.deepEqual(await (await attacker.client.request('GET', '/api-accounts')).json(), []);
  const [event] = await webStoresOf(stack).audit.list(attacker.user._id, 1);
  t.like(event, {
    action: 'account-unlinked',
    accountId: id,
    label: 'Loot',
    outcome: 'done',
    notice: 'queued',
  });
  t.is((await link(owner.client)).status, 201);
});

test('if only the mail or the final audit record fails, the command still succeeds, with a warning', async (t) => {
  const { client, user } = await createWebUser(stack, 'untold@example.com');
  const { id, apiKey } = await stack.createAccount();
  t.is((await client.request('POST', '/api-accounts/link', { api_key: apiKey })).status, 201);
  const stores = webStoresOf(stack);
  const fail = () => Promise.reject(new AppError('service_unavailable'));
  const auditFailingOn = (method: keyof AuditStore): AuditStore =>
    new Proxy(stores.audit, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        return name === method ? fail : typeof value === 'function' ? value.bind(target) : value;
      },
    });
  const context = (positional: string, failing: keyof AuditStore): ChangeContext =>
    ({
      ...stack,
      accounts: new AccountStore(stack.mongo.db, stack.config),
      web: { ...stores, audit: auditFailingOn(failing) },
      trail: openTrail(stack, () => undefined, null),
      positionals: [positional],
      options: { reason: 'a test' },
      flags: new Set(),
      warn: (text: string) => warnings.push(text),
    }) as unknown as ChangeContext;
  const warnings: string[] = [];

  t.like(await userVerbs['unlink']!.run(context(id, 'markQueued')), { id, email: user.email });
  t.deepEqual(await stores.links.list(user._id), []);
  t.deepEqual(warnings, [
    'The command succeeded, but the mail that notifies the user is not queued yet; a worker will queue it within a few minutes. ' +
      'Do not repeat it. Reason: Redis or MongoDB does not respond.',
  ]);

  t.like(await userVerbs['ban']!.run(context(user._id, 'finish')), { banned: true });
  t.is(warnings.length, 2);
  t.regex(warnings[1]!, /^The command succeeded, but the audit log may continue to show it as started\./);
  t.truthy((await stores.users.findById(user._id))?.bannedAt);

  await t.throwsAsync(userVerbs['unban']!.run(context(user._id, 'start')), { instanceOf: AppError });
  t.is(warnings.length, 2, 'a command that failed does not warn');
});

test('if no user or link matches the given name, the command fails, whatever the name is', async (t) => {
  const { id } = await stack.createAccount();
  for (const name of ['nobody@example.com', '{"$gt":""}', 'x'.repeat(100_000)]) {
    const { exitCode, reason } = await runRefused('show', name);
    t.is(exitCode, 1);
    t.true(reason.startsWith(`No user "${name.slice(0, 50)}`), 'the message repeats the name');
    t.true(
      reason.includes('user list') && reason.length < 300,
      'the message stays short and suggests what to do',
    );
  }
  t.deepEqual(await runRefused('unlink', id), { exitCode: 1, reason: 'No user has linked this account.' });
  t.deepEqual(await runRefused('unlink', '4294967296'), {
    exitCode: 1,
    reason:
      'No account is linked under the number 4294967296. An unlinked account has no number: give its id or API key; "account list" lists all accounts.',
  });
  const { exitCode, stderr } = await runAdmin(stack.env, 'user', 'unban');
  t.is(exitCode, 2);
  t.true(
    stderr.trimEnd().endsWith('<user> is the id or the email address of a user of the account area.'),
    stderr,
  );
});
