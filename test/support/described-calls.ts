import { randomUUID } from 'node:crypto';
import { EmailCodeStore } from '../../api/account-area/email-code-store.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import type { Description, OperationObject } from '../../api/description/description.ts';
import type { ConfirmedAction } from '../../shared/account-area/mail.ts';
import type { WebLink, WebUser } from '../../shared/account-area/web-models.ts';
import type { TestStack } from './stack.ts';
import { createWebUser, webStoresOf } from './web-client.ts';

/** An operation in the OpenAPI document. */
export interface DescribedOperation {
  readonly path: string;
  readonly method: string;
  readonly operation: OperationObject;
}

/** The values that a call sends. Those left out are the examples of the OpenAPI document. */
export interface Call {
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: Readonly<Record<string, string | number>>;
  readonly query?: string;
  readonly body?: string;
  readonly contentType?: string;
}

export const listOperations = (description: Description): DescribedOperation[] =>
  Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );

/** The names of the security schemes that a call needs: the first alternative if there are several. */
export const schemesOf = ({ operation }: DescribedOperation): string[] =>
  Object.keys(operation.security[0] ?? {});

export async function send(
  url: string,
  { path, method, operation }: DescribedOperation,
  call: Call,
): Promise<Response> {
  const { parameters = [] } = operation;
  const query = parameters
    .filter((one) => one.in === 'query' && one.example !== undefined)
    .map(({ name, example }) => `${name}=${encodeURIComponent(String(example))}`);
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = call.path?.[name] ?? parameters.find((one) => one.name === name)?.example;
    return encodeURIComponent(String(value));
  });
  const body = call.body ?? createForm(operation);
  return await fetch(`${url}${filled}?${call.query ?? query.join('&')}`, {
    method: method.toUpperCase(),
    headers: {
      ...call.headers,
      ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
  });
}

/** Fills in the example form of an operation that takes only a form. */
function createForm({ requestBody }: OperationObject): FormData | undefined {
  const { 'application/json': json, 'multipart/form-data': form } = requestBody?.content ?? {};
  const parts = json === undefined ? form?.examples?.['usual']?.value : undefined;
  if (parts === undefined) return undefined;
  const filled = new FormData();
  for (const [name, value] of Object.entries(parts as Record<string, string>))
    filled.append(name, value.startsWith('@') ? new File(['{}'], value.slice(1)) : value);
  return filled;
}

/** The operations confirmed with a mailed code. */
const confirmedActions: Readonly<Record<string, ConfirmedAction>> = {
  unlinkApiAccount: 'unlink',
  revealApiKey: 'reveal',
  regenerateKeyOfApiAccount: 'regenerate',
};

/** A call that can succeed, with the user and link created for it. */
export interface PreparedCall extends Call {
  readonly headers: Readonly<Record<string, string>>;
  readonly user?: WebUser;
  readonly link?: WebLink;
  /** The account that the call links. */
  readonly accountId?: string;
}

/**
 * Creates a new user and data for a call of an operation, and returns the call with exactly the credentials that the
 * operation requires. The body is set only if the example body refers to data that a new server does not have.
 */
export async function prepareCall(stack: TestStack, described: DescribedOperation): Promise<PreparedCall> {
  const { operationId } = described.operation;
  const schemes = schemesOf(described);
  if (schemes.includes('apiKey')) {
    const { apiKey } = await stack.createAccount();
    return { headers: { authorization: `Bearer ${apiKey}` } };
  }
  if (schemes.includes('metricsToken'))
    return { headers: { authorization: `Bearer ${stack.config.metricsToken}` } };
  if (schemes.includes('adminToken'))
    return { headers: { authorization: `Bearer ${stack.config.adminToken}` } };
  const email = `${randomUUID()}@example.com`;
  if (operationId === 'verifyCode') return { headers: {}, ...(await prepareSignIn(stack, email)) };
  if (schemes.length === 0) return { headers: {} };

  const { client, user, sessionId } = await createWebUser(stack, email);
  const headers = {
    ...(schemes.includes('webSession') ? { cookie: `mg_session=${client.cookies.get('mg_session')}` } : {}),
    ...(schemes.includes('webRefresh') ? { cookie: `mg_refresh=${client.cookies.get('mg_refresh')}` } : {}),
    ...(schemes.includes('csrfToken') ? { 'x-csrf-token': client.csrfToken! } : {}),
  };
  if (described.path.includes('{session_id}')) return { headers, user, path: { session_id: sessionId } };
  const { id: accountId, apiKey } = await stack.createAccount();
  if (operationId === 'linkApiAccount')
    return { headers, user, accountId, body: JSON.stringify({ api_key: apiKey }) };
  if (!described.path.includes('{account_id}')) return { headers, user };
  const link = await webStoresOf(stack).links.create({ userId: user._id, accountId, label: 'Example' });
  // Codes are mailed only to the user's own address.
  const body = operationId.startsWith('request')
    ? { body: JSON.stringify({ email }) }
    : await prepareBody(stack, operationId, link);
  return { headers, user, link, path: { account_id: link._id }, ...body };
}

const codesOf = ({ redis, config }: TestStack): EmailCodeStore => new EmailCodeStore(redis, config.masterKey);

async function prepareSignIn(stack: TestStack, email: string) {
  const { user } = await webStoresOf(stack).users.findOrCreate(email, { language: 'en' });
  const { challengeId, code } = await codesOf(stack).create({ purpose: 'login', email, subject: '' });
  return { user, body: JSON.stringify({ challenge_id: challengeId, code }) };
}

async function prepareBody(
  stack: TestStack,
  operationId: string,
  { userId, _id, accountId }: WebLink,
): Promise<{ body?: string }> {
  if (operationId === 'redeemForApiAccount') {
    const grant = { balanceNano: 1n, freeRequests: 0, expiresAt: null };
    const [code] = await new RefillCodeStore(stack.mongo.db).create(1, grant);
    return { body: JSON.stringify({ code }) };
  }
  const purpose = confirmedActions[operationId];
  if (purpose === undefined) return {};
  const linkSubject = `${userId}:${_id}`;
  const account = await new AccountStore(stack.mongo.db, stack.config).findById(accountId);
  const subject = purpose === 'unlink' ? linkSubject : `${linkSubject}:${account!.keyHash}`;
  const { challengeId, code } = await codesOf(stack).create({ purpose, email: 'anna@example.com', subject });
  return { body: JSON.stringify({ challenge_id: challengeId, code }) };
}
