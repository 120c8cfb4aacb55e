import type { Operation } from '../../../shared/contract/operation.ts';
import type { TestStack } from '../../support/stack.ts';
import { createWebUser, webStoresOf, type WebClient } from '../../support/web-client.ts';
import { ownAddress, type Bounds } from './spec-bounds.ts';

/** Calls to the account area in which any part may be invalid. */

export interface Caller {
  readonly client: WebClient;
  readonly email: string;
  readonly linkId: number;
}

let callers = 0;

/** A new user with an account, so that no other test can use up its limits, ban it or sign it out. */
export async function createCaller(stack: TestStack): Promise<Caller> {
  const email = `fuzz-${(callers += 1)}@example.com`;
  const { client, user } = await createWebUser(stack, email);
  const { id: accountId } = await stack.createAccount();
  const { _id: linkId } = await webStoresOf(stack).links.create({
    userId: user._id,
    accountId,
    label: 'mine',
  });
  return { client, email, linkId };
}

export interface Parts {
  readonly path: Record<string, unknown>;
  readonly query: Record<string, unknown>;
  readonly body: Record<string, unknown>;
}

export function createParts({ body = {} }: Bounds, { email, linkId }: Caller): Parts {
  const ownEmail = body['email'] === ownAddress ? { email } : {};
  return {
    path: { account_id: linkId, session_id: crypto.randomUUID() },
    query: {},
    body: { ...body, ...ownEmail },
  };
}

export interface Answer {
  readonly status: number;
  /** `ok`, or the error code. */
  readonly outcome: string;
  readonly issues: readonly { readonly loc: readonly (string | number)[]; readonly type: string }[];
  readonly json: unknown;
}

let sent = 0;

/** Each call comes from a different network, so that no network limit is ever reached. */
function createNetwork(): string {
  sent += 1;
  return `10.${(sent >> 16) & 255}.${(sent >> 8) & 255}.${sent & 255}`;
}

export interface SendOptions {
  readonly text?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function send(
  operation: Operation,
  caller: Caller,
  parts: Parts,
  options: SendOptions = {},
): Promise<Answer> {
  const { client } = caller;
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(parts.path[name])),
  );
  const query = new URLSearchParams(
    Object.entries(parts.query).map(([name, value]): [string, string] => [name, String(value)]),
  );
  const { text = operation.body === undefined ? null : JSON.stringify(parts.body), headers } = options;
  const response = await fetch(`${client.url}/v1${path}?${query.toString()}`, {
    method: operation.method.toUpperCase(),
    headers: {
      cookie: client.cookieHeader,
      'x-csrf-token': client.csrfToken!,
      'x-forwarded-for': createNetwork(),
      ...(text === null ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(text === null ? {} : { body: text, duplex: 'half' }),
  });
  const { status } = response;
  const json: unknown = status === 204 ? null : await response.json();
  if (response.ok) return { status, outcome: 'ok', issues: [], json };
  const { error, detail } = json as { error: { code: string }; detail: Answer['issues'] };
  return { status, outcome: error.code, issues: Array.isArray(detail) ? detail : [], json };
}
