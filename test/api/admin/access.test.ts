import { randomUUID } from 'node:crypto';
import test from 'ava';
import { startApi } from '../../../api/server.ts';
import { operations } from '../../../api/contract/operations.ts';
import { fullPathOf } from '../../../api/description/describe-operation.ts';
import { createApiKey, createRefillCode } from '../../../shared/accounts/credentials.ts';
import { createTokenSecret } from '../../../shared/admin/admin-scope.ts';
import { adminScopes, allowsScope } from '../../../shared/contract/admin-terms.ts';
import type { Operation } from '../../../shared/contract/operation.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { callAdmin, codeOf, createToken, testAdminToken } from '../../support/admin-api.ts';
import { captureLog } from '../../support/captured-log.ts';
import { apiOptions, startStack, useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Who may call the admin API. The rules are read from the contract, so that new operations are tested too. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ workers: [], env: { ADMIN_TOKEN: testAdminToken, TRUST_PROXY: 'on' } });
});
test.after.always(() => stack?.close());

const adminOperations = Object.values<Operation>(operations).filter(({ auth }) => auth === 'admin');

/** Each call comes from a network of its own, so that wrong tokens do not limit other tests. */
const fromNewNetwork = () => ({ 'x-forwarded-for': `2001:db8:${randomUUID().slice(0, 4)}::1` });

/** Calls an operation with a token. Its body is its example; ids in its path do not exist. */
const call = (
  operation: Operation,
  token: string | null,
  headers: Record<string, string> = fromNewNetwork(),
) => {
  const path = fullPathOf(operation)
    .replace('/v1/admin', '')
    .replaceAll(/\{\w+\}/g, 'none');
  return callAdmin(stack.url, token, operation.method.toUpperCase(), path, operation.example?.body, headers);
};

/** Not a GET, so that what is looked for, such as a key, is in no address. */
const readsByPost = 'findAnything';

test('every operation of the admin API has a scope that its method allows: only reads and sessions have "read"', (t) => {
  t.true(adminOperations.length > 35);
  for (const { operationId, method, adminScope = 'all' } of adminOperations)
    if (method !== 'get' && operationId !== readsByPost && !operationId.endsWith('AdminSession'))
      t.not(adminScope, 'read', operationId);
});

test('a change with a parameter that it does not have is refused, such as a dry run of what has none', async (t) => {
  const { id } = await stack.createAccount();
  for (const path of [
    `/accounts/${id}/credits?dry_run=true`,
    `/accounts/${id}/rotate-key?dryrun=true`,
    `/accounts/${id}/rotate-key?dry_run[]=true`,
    '/codes?dry_run=true',
  ]) {
    const body = path.includes('rotate') ? undefined : { amount: 5, balance: 5 };
    const response = await callAdmin(stack.url, testAdminToken, 'POST', path, body, {
      'idempotency-key': 'a',
    });
    t.is(response.status, 422, path);
    t.is(codeOf(response), 'validation_failed');
  }
});

test('without a token, with a wrong one or an API key, every operation is a 401 with a challenge', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const operation of adminOperations) {
    for (const token of [null, `mga-${'x'.repeat(43)}`, apiKey, 'short']) {
      const response = await call(operation, token);
      t.is(response.status, 401, operation.operationId);
      t.is(codeOf(response), 'invalid_api_key');
      t.regex(response.headers.get('www-authenticate') ?? '', /^Bearer realm="admin"/);
      t.is(response.headers.get('cache-control'), 'no-store');
    }
  }
});

for (const scope of adminScopes)
  test(`a token with the scope ${scope} is refused with 403 by exactly the operations outside of it`, async (t) => {
    const token = await createToken(stack, `scope-${scope}`, scope);
    for (const operation of adminOperations) {
      const response = await call(operation, token);
      const isAllowed = allowsScope(scope, operation.adminScope ?? 'all');
      if (isAllowed) t.not(response.status, 403, operation.operationId);
      else t.like({ ...response, code: codeOf(response) }, { status: 403, code: 'forbidden' });
    }
  });

test('another method is a 405 that lists the supported ones', async (t) => {
  const paths = new Map<string, Set<string>>();
  for (const operation of adminOperations) {
    const methods = paths.get(operation.path) ?? new Set();
    paths.set(operation.path, methods.add(operation.method.toUpperCase()));
  }
  for (const [path, methods] of paths) {
    if (path.includes('{')) continue;
    const method = ['PUT', 'GET', 'DELETE'].find((one) => !methods.has(one))!;
    const response = await callAdmin(stack.url, testAdminToken, method, path.replace('/admin', ''));
    t.is(response.status, 405, `${method} ${path}`);
    for (const supported of methods) t.regex(response.headers.get('allow') ?? '', new RegExp(supported));
  }
});

test('without a right token, unknown paths and methods are a 401 like all others, and tell nothing', async (t) => {
  for (const [method, path] of [
    ['GET', '/nonsense'],
    ['PUT', '/accounts'],
    ['DELETE', '/accounts/none'],
    ['POST', '/demand'],
    ['POST', '/accounts/none/nonsense'],
  ] as const) {
    for (const token of [null, 'wrong']) {
      const response = await callAdmin(stack.url, token, method, path, undefined, fromNewNetwork());
      t.like({ ...response, code: codeOf(response) }, { status: 401, code: 'invalid_api_key' }, path);
      t.is(response.headers.get('allow'), null);
    }
    const { status } = await callAdmin(stack.url, testAdminToken, method, path);
    t.true([404, 405].includes(status), `${method} ${path}: ${status}`);
  }
});

test('while there is no token at all, every path of the admin API is unknown, whatever is sent; the first token opens it', async (t) => {
  const bare = await useStack(t, { workers: [] });
  for (const token of [null, testAdminToken, `mga-${'x'.repeat(43)}`])
    for (const [method, path] of [
      ['GET', '/accounts'],
      ['POST', '/session'],
      ['PUT', '/accounts'],
      ['GET', '/nonsense'],
    ] as const) {
      const response = await callAdmin(bare.url, token, method, path);
      t.is(response.status, 404, `${method} ${path}`);
      t.is(codeOf(response), 'not_found');
    }
  t.is((await callAdmin(bare.url, null, 'GET', '/demand')).status, 200);
  const token = await createToken(bare, 'first', 'read');
  t.is((await callAdmin(bare.url, token, 'GET', '/accounts')).status, 200);
  t.is((await callAdmin(bare.url, null, 'GET', '/accounts')).status, 401);
});

test('a revoked token stops in all processes, and so do its sessions; its name cannot be used again', async (t) => {
  const other = await startApi(stack.config, stack.env, stack.log, apiOptions);
  t.teardown(() => other.stop());
  const name = `revoked-${randomUUID().slice(0, 8)}`;
  const token = await createToken(stack, name, 'all');
  const session = await callAdmin(stack.url, token, 'POST', '/session');
  const cookie = session.headers.getSetCookie()[0]!.split(';')[0]!;
  const read = (url: string) => callAdmin(url, token, 'GET', '/accounts', undefined, fromNewNetwork());
  t.is((await read(stack.url)).status, 200);
  await waitFor('the other api to know it', async () => (await read(other.url)).status === 200);
  t.is((await callAdmin(other.url, null, 'GET', '/accounts', undefined, { cookie })).status, 200);
  t.like(await readAdmin(stack.env, 'token', 'revoke', name), { name, scope: 'all' });
  for (const { url } of [stack.api, other]) {
    await waitFor('the token to stop', async () => (await read(url)).status === 401);
    t.is((await callAdmin(url, null, 'GET', '/accounts', undefined, { cookie })).status, 401);
  }
  const again = await runAdmin(stack.env, 'token', 'create', name, '--scope', 'read');
  t.is(again.exitCode, 1);
  t.regex(again.stderr, /used before/);
});

test('wrong tokens are limited by network, before anything is looked up; a named token still works there', async (t) => {
  const token = await createToken(stack, `limited-${randomUUID().slice(0, 8)}`, 'read');
  const headers = { 'x-forwarded-for': '198.51.100.77' };
  const sendWrong = () =>
    callAdmin(stack.url, `wrong-${randomUUID()}`, 'GET', '/accounts', undefined, headers);
  let refused = await sendWrong();
  let sent = 1;
  for (; refused.status === 401; sent++) refused = await sendWrong();
  t.is(sent, 101);
  t.is(refused.status, 429);
  t.is(codeOf(refused), 'too_many_attempts');
  t.true(Number(refused.headers.get('retry-after')) > 0);
  // A token that can be guessed is not compared any more, but one of 256 random bits is.
  t.is((await callAdmin(stack.url, testAdminToken, 'GET', '/accounts', undefined, headers)).status, 429);
  t.is((await callAdmin(stack.url, token, 'GET', '/accounts', undefined, headers)).status, 200);
  t.is(
    (await callAdmin(stack.url, testAdminToken, 'GET', '/accounts', undefined, fromNewNetwork())).status,
    200,
  );
});

test('a wrong token that is sent again and again counts once, for the API and the board: a poller locks out nobody', async (t) => {
  const headers = { 'x-forwarded-for': '198.51.100.78' };
  const old = `replaced-${randomUUID()}`;
  const basic = `Basic ${Buffer.from(`operator:${old}`).toString('base64')}`;
  for (let sent = 0; sent < 150; sent++) {
    t.is((await callAdmin(stack.url, old, 'GET', '/demand', undefined, headers)).status, 401);
    const board = await fetch(`${stack.url}/admin/queues`, { headers: { ...headers, authorization: basic } });
    t.is(board.status, 401);
    await board.body?.cancel();
  }
  t.is((await callAdmin(stack.url, testAdminToken, 'GET', '/accounts', undefined, headers)).status, 200);
});

test('a session has the scope of its token, and changes need its CSRF token and an origin of this service', async (t) => {
  const token = await createToken(stack, `session-${randomUUID().slice(0, 8)}`, 'billing');
  const started = await callAdmin<{ csrf_token: string; scope: string }>(
    stack.url,
    token,
    'POST',
    '/session',
  );
  t.like(started, { status: 200, body: { scope: 'billing' } });
  const [line = ''] = started.headers.getSetCookie();
  t.regex(line, /^mg_admin=[\w-]{43}; /);
  for (const attribute of ['path=/', 'httponly', 'samesite=strict'])
    t.true(line.toLowerCase().includes(attribute));
  const cookie = line.split(';')[0]!;
  const csrf = { 'x-csrf-token': started.body.csrf_token };
  const send = (method: string, path: string, body?: unknown, headers = {}) =>
    callAdmin(stack.url, null, method, path, body, { cookie, ...headers });
  t.is((await send('GET', '/accounts')).status, 200);
  const { expires_at: expiresAt, ...again } = (await send('GET', '/session')).body;
  t.like(again, { scope: 'billing', csrf_token: started.body.csrf_token }, 'a reloaded page gets the same');
  t.true(Math.abs(Date.parse(String(expiresAt)) - Date.now() - 8 * 3_600_000) < 60_000);
  t.is((await callAdmin(stack.url, token, 'GET', '/session')).status, 404, 'a token is no session');
  const account = { name: 'Anna' };
  t.is(codeOf(await send('POST', '/accounts', account)), 'csrf_failed');
  t.is(codeOf(await send('POST', '/accounts', account, { 'x-csrf-token': 'x' })), 'csrf_failed');
  const foreign = { ...csrf, origin: 'https://elsewhere.example' };
  t.is(codeOf(await send('POST', '/accounts', account, foreign)), 'origin_refused');
  t.is((await send('POST', '/accounts', account, { ...csrf, origin: stack.url })).status, 201);
  const forDryRuns = { 'x-csrf-token': `${started.body.csrf_token}.dry-run` };
  for (const query of ['', '?dry_run=false', '?dry_run=false&dry_run=true'])
    t.is(codeOf(await send('POST', `/codes/x/revoke${query}`, undefined, forDryRuns)), 'csrf_failed');
  t.is(codeOf(await send('POST', '/codes/x/revoke?dry_run=true', undefined, forDryRuns)), 'not_found');
  t.is(codeOf(await send('POST', '/tokens', { name: 'x', scope: 'all' }, csrf)), 'forbidden');
  t.is((await send('POST', '/session', undefined, csrf)).status, 401, 'a session does not start another one');
  const ended = await send('DELETE', '/session', undefined, csrf);
  t.is(ended.status, 204);
  t.regex(ended.headers.getSetCookie()[0] ?? '', /^mg_admin=;/);
  t.is((await send('GET', '/accounts')).status, 401);
});

test('over https, the cookie is secure and bound to its host', async (t) => {
  const secure = await useStack(t, {
    workers: [],
    env: { ADMIN_TOKEN: testAdminToken, PUBLIC_URL: 'https://gateway.example' },
  });
  const { headers } = await callAdmin(secure.url, testAdminToken, 'POST', '/session');
  t.regex(headers.getSetCookie()[0] ?? '', /^__Host-mg_admin=.*secure/i);
});

test('the access line of a call names its token, and no log line has its secret', async (t) => {
  const { log, lines } = captureLog();
  const logged = await useStack(t, { workers: [], env: { ADMIN_TOKEN: testAdminToken }, log });
  const token = await createToken(logged, 'support', 'read');
  await callAdmin(logged.url, token, 'GET', '/accounts');
  await callAdmin(logged.url, testAdminToken, 'GET', '/accounts');
  await callAdmin(logged.url, `mga-${'y'.repeat(43)}`, 'GET', '/accounts');
  const named = await waitFor('the access lines', () => {
    const tokens = lines.filter(({ msg, path }) => msg === 'request' && path === '/v1/admin/accounts');
    return tokens.length === 3 && tokens;
  });
  t.deepEqual(
    named.map((line) => line['token']),
    ['support', 'ADMIN_TOKEN', undefined],
  );
  const text = JSON.stringify(lines);
  for (const secret of [token, testAdminToken, 'y'.repeat(43)]) t.false(text.includes(secret));
});

test('an API key, a token or a code in a path is neither logged nor returned', async (t) => {
  const { log, lines } = captureLog();
  const logged = await useStack(t, { workers: [], env: { ADMIN_TOKEN: testAdminToken }, log });
  const secrets = { accounts: createApiKey(), tokens: createTokenSecret(), codes: createRefillCode() };
  const { accounts: key, tokens: secret, codes: code } = secrets;
  for (const [method, path] of [
    ['GET', `/accounts/${key}`],
    ['PUT', `/accounts/${key}`],
    ['POST', `/accounts/${key.replace('-', '%2D')}/rotate-key`],
    ['GET', `/jobs?account=${key}`],
    ['DELETE', `/tokens/${secret}`],
    ['POST', `/codes/${code}/revoke`],
    ['GET', `/nonsense/${key}`],
    ['GET', `//${key}`],
  ] as const) {
    const { status, body } = await callAdmin(logged.url, testAdminToken, method, path);
    t.true((path.includes('?') ? [422] : [404, 405]).includes(status), `${method} ${path}: ${status}`);
    for (const one of [key, secret, code]) t.false(JSON.stringify(body).includes(one.slice(5)), path);
  }
  await waitFor('the access lines', () => lines.filter(({ msg }) => msg === 'request').length >= 8);
  const text = JSON.stringify(lines);
  for (const one of [key, secret, code]) t.false(text.includes(one.slice(5)));
});

test('the demand is also given to a token of the admin API', async (t) => {
  const guarded = await useStack(t, { workers: [], env: { METRICS_TOKEN: 'token-of-monitoring' } });
  t.is((await callAdmin(guarded.url, null, 'GET', '/demand')).status, 401);
  t.is((await callAdmin(guarded.url, 'token-of-monitoring', 'GET', '/demand')).status, 200);
  const token = await createToken(guarded, 'scaler', 'read');
  t.is((await callAdmin(guarded.url, token, 'GET', '/demand')).status, 200);
});
