import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import type { Description } from '../../../api/description/description.ts';
import { fullPathOf } from '../../../api/description/describe-operation.ts';
import {
  isWebOperation,
  hasUnsafeMethod,
  needsCsrfToken,
  type Operation,
} from '../../../shared/contract/operation.ts';
import { operations } from '../../../api/contract/operations.ts';
import { AccountPath } from '../../../api/contract/web-accounts.ts';
import { DescriptionChecker } from '../../support/description-checker.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { createWebUser, webStoresOf, type WebClient } from '../../support/web-client.ts';
import { createEmail } from '../../support/web-sign-in.ts';

/** Rules for every operation of the account area, read from the contract, so that new operations are tested too. */

const webOperations = Object.values<Operation>(operations).filter(isWebOperation);
const withSession = webOperations.filter(({ auth }) => auth === 'web');
const singleAccountOperations = withSession.filter(({ pathParameters }) => pathParameters === AccountPath);

let stack: TestStack;
let checker: DescriptionChecker;
/** Operations and statuses already checked against the OpenAPI document. Compiling a schema takes time. */
const checked = new Set<string>();

test.before(async () => {
  stack = await startStack({ workers: [], env: { WEB_CAPTCHA: 'off' } });
  const response = await fetch(`${stack.url}/v1/openapi.json`);
  checker = new DescriptionChecker((await response.json()) as Description);
});
test.after.always(() => stack?.close());

interface Call {
  readonly path?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body text; defaults to the operation's example. */
  readonly body?: string;
}

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly body: unknown;
}

/** Calls an operation as in its example, and checks that the response is documented and not cacheable. */
async function call(t: ExecutionContext, operation: Operation, options: Call = {}): Promise<Answer> {
  const { example } = operation;
  let path = fullPathOf(operation);
  for (const [name, value] of Object.entries({ ...example?.path, ...options.path })) {
    path = path.replace(`{${name}}`, String(value));
  }
  const body = options.body ?? (operation.body === undefined ? undefined : JSON.stringify(example?.body));
  const response = await fetch(`${stack.url}${path}`, {
    method: operation.method.toUpperCase(),
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...options.headers },
    ...(body === undefined ? {} : { body }),
  });
  t.is(response.headers.get('cache-control'), 'no-store');
  const kind = `${operation.operationId} ${response.status}`;
  if (!checked.has(kind)) {
    checked.add(kind);
    t.deepEqual(await checker.findFaults(fullPathOf(operation), operation.method, response.clone()), []);
  }
  const text = await response.text();
  const json = (text === '' ? null : JSON.parse(text)) as { error?: { code: string } } | null;
  return { status: response.status, code: json?.error?.code, body: json };
}

const headersOf = ({ cookieHeader, csrfToken }: WebClient): Record<string, string> => ({
  cookie: cookieHeader,
  'x-csrf-token': csrfToken!,
});

const createClient = async (email = createEmail()) => await createWebUser(stack, email);

const unauthenticated = { status: 401, code: 'unauthenticated' };
const refusedOrigin = { status: 403, code: 'origin_refused' };
const wrongCsrf = { status: 403, code: 'csrf_failed' };

test('the contract contains the operations under test', (t) => {
  t.true(webOperations.length >= 27);
  t.true(singleAccountOperations.length >= 12);
  const open = webOperations.filter(({ auth }) => auth !== 'web').map(({ operationId }) => operationId);
  t.deepEqual(open, ['createCaptcha', 'verifyCaptcha', 'requestCode', 'verifyCode', 'refreshSession']);
});

for (const operation of withSession) {
  const { operationId } = operation;

  test(`${operationId} without a session, or with an invalid cookie, is a 401`, async (t) => {
    const { client } = await createClient();
    t.like(await call(t, operation), unauthenticated);
    const invalidCookies = [
      'x',
      randomBytes(64).toString('base64url'),
      client.cookies.get('mg_session')!.replace(/(?<=^.{40})./, (char) => (char === 'A' ? 'B' : 'A')),
      client.cookies.get('mg_refresh')!,
    ];
    for (const token of invalidCookies) {
      const headers = { ...headersOf(client), cookie: `mg_session=${token}` };
      t.like(await call(t, operation, { headers }), unauthenticated, token);
    }
    const headers = { ...headersOf(client), cookie: `mg_refresh=${client.cookies.get('mg_refresh')}` };
    if (operation.acceptsRefreshCookie === true) return;
    t.like(await call(t, operation, { headers }), unauthenticated, 'only a refresh cookie');
  });

  test(`${operationId} with an expired or revoked session, or with the session of a banned user, is a 401`, async (t) => {
    const { users, sessions } = webStoresOf(stack);
    const documents = stack.mongo.db.collection<{ _id: string }>('web_sessions');
    const past = new Date(Date.now() - 1);
    for (const change of [{ accessExpiresAt: past }, { expiresAt: past }]) {
      const { client, sessionId } = await createClient();
      await documents.updateOne({ _id: sessionId }, { $set: change });
      // An operation that accepts a refresh cookie is called without one here.
      if (operation.acceptsRefreshCookie === true) client.cookies.delete('mg_refresh');
      t.like(await call(t, operation, { headers: headersOf(client) }), unauthenticated);
    }
    const revoked = await createClient();
    await sessions.revoke(revoked.user._id, revoked.sessionId);
    t.like(await call(t, operation, { headers: headersOf(revoked.client) }), unauthenticated);
    const banned = await createClient();
    await users.ban(banned.user._id, 'test');
    await sessions.revokeAll(banned.user._id);
    t.like(await call(t, operation, { headers: headersOf(banned.client) }), unauthenticated);
  });
}

for (const operation of withSession.filter(needsCsrfToken)) {
  const { operationId } = operation;

  test(`${operationId} requires the CSRF token of its own session, and checks it before the body`, async (t) => {
    const email = createEmail();
    const { client } = await createClient(email);
    const { client: sibling } = await createClient(email);
    const { 'x-csrf-token': csrfToken, ...headers } = headersOf(client);
    t.like(await call(t, operation, { headers }), wrongCsrf);
    for (const token of [
      '',
      sibling.csrfToken!,
      `${csrfToken!.slice(0, -1)}-`,
      client.cookies.get('mg_session')!,
    ]) {
      const wrongHeaders = { ...headers, 'x-csrf-token': token };
      t.like(await call(t, operation, { headers: wrongHeaders }), wrongCsrf);
      if (operation.body !== undefined) {
        t.like(await call(t, operation, { headers: wrongHeaders, body: '{"no' }), wrongCsrf);
        t.like(await call(t, operation, { headers: wrongHeaders, body: '{}' }), wrongCsrf);
      }
    }
    const response = await call(t, operation, { headers: { ...headersOf(client), origin: stack.url } });
    t.false(
      ['unauthenticated', 'csrf_failed', 'origin_refused'].includes(response.code ?? ''),
      response.code,
    );
  });
}

for (const operation of webOperations.filter(hasUnsafeMethod)) {
  test(`${operation.operationId} from a page of another origin is rejected before anything else is checked`, async (t) => {
    const { client } = await createClient();
    const { host, port } = new URL(stack.url);
    const foreign = [
      'https://evil.example',
      'null',
      `https://${host}`,
      `http://localhost.evil.example:${port}`,
      `${stack.url}.evil.example`,
      `http://127.0.0.1:${Number(port) + 1}`,
    ];
    for (const origin of foreign) {
      t.like(await call(t, operation, { headers: { origin } }), refusedOrigin, origin);
      const headers = { ...headersOf(client), origin };
      t.like(await call(t, operation, { headers, body: '{"no' }), refusedOrigin, origin);
    }
    t.not((await call(t, operation, { headers: { origin: stack.url } })).code, 'origin_refused');
  });
}

for (const operation of singleAccountOperations) {
  test(`${operation.operationId} treats an account of another user like one that does not exist`, async (t) => {
    const [{ client }, other] = [await createClient(), await createClient()];
    const { id } = await stack.createAccount();
    const link = await webStoresOf(stack).links.create({
      userId: other.user._id,
      accountId: id,
      label: 'Theirs',
    });
    const headers = headersOf(client);
    const [theirs, ...missing] = await Promise.all(
      [String(link._id), '2147483646', '0', '-1', '9'.repeat(15)].map((account_id) =>
        call(t, operation, { headers, path: { account_id } }).then((response) => ({
          ...response,
          body: JSON.stringify(response.body).replaceAll(account_id, '<id>'),
        })),
      ),
    );
    t.like(theirs, { status: 404, code: 'not_found' });
    for (const response of missing) t.deepEqual(response, theirs);
    for (const account_id of ['abc', '1.5', '%20', 'null', `${link._id}x`]) {
      const response = await call(t, operation, { headers, path: { account_id } });
      t.like(response, { status: 422, code: 'validation_failed' }, account_id);
      const { detail } = response.body as { detail: { loc: string[] }[] };
      t.deepEqual(detail[0]!.loc, ['path', 'account_id'], account_id);
    }
  });
}
