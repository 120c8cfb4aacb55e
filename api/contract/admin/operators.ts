import Type, { type Static } from 'typebox';
import { adminScopes } from '../../../shared/contract/admin-terms.ts';
import { Nullable, StringEnum, TimeBound } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { DryRunQuery, dryRuns } from './dry-run.ts';
import {
  AccountName,
  IdInQuery,
  Moment,
  OptionalMoment,
  PageOfAdmin,
  pageQuery,
  ReasonQuery,
} from './fields.ts';

const Scope = StringEnum(adminScopes, {
  description:
    '`read` only reads; `billing` also creates accounts, credits and codes; `all` does everything.',
});

const tokenFields = {
  id: Type.String({ description: 'The same as `name`.' }),
  name: Type.String(),
  scope: Scope,
  created_at: OptionalMoment('When it was created; null for `ADMIN_TOKEN` of the environment.'),
  revoked_at: OptionalMoment('When it was revoked; null while it works.'),
};

const AdminToken = Type.Object(tokenFields, { title: 'AdminToken' });

const token = {
  id: 'billing-system',
  name: 'billing-system',
  scope: 'billing',
  created_at: '2026-11-21T09:15:04.000Z',
  revoked_at: null,
};

export const CreateTokenRequest = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 63,
      description:
        'Letters, digits, dots, dashes and underscores. It can be used only once, because the audit log names tokens by it.',
    }),
    scope: Scope,
  },
  { title: 'CreateTokenRequest' },
);
export type CreateTokenRequest = Static<typeof CreateTokenRequest>;

export const createAdminToken = defineOperation({
  operationId: 'createAdminToken',
  tag: 'Admin',
  summary: 'Create a token',
  description:
    'A name can be used once, so a repeated call creates nothing: it is a 422 that says so, also with an `Idempotency-Key`. If ' +
    'the response with the token was lost, revoke that one, and create another with another name.',
  method: 'post',
  path: '/admin/tokens',
  auth: 'admin',
  query: ReasonQuery,
  body: CreateTokenRequest,
  response: Type.Object(
    { ...tokenFields, token: Type.String({ description: 'The token, which is shown only here.' }) },
    { title: 'CreatedToken' },
  ),
  status: 201,
  errors: [],
  example: {
    body: { name: 'billing-system', scope: 'billing' },
    response: { ...token, token: 'mga-Zk3v9n1Qw8rT5yU2iO7pA4sD6fG0hJlXcVbNmQwErTy' },
  },
});

export const listAdminTokens = defineOperation({
  operationId: 'listAdminTokens',
  tag: 'Admin',
  summary: 'List tokens',
  description: 'Revoked ones included, without their secrets.',
  method: 'get',
  path: '/admin/tokens',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object(pageQuery),
  response: PageOfAdmin(AdminToken),
  errors: [],
  example: { query: { limit: 20 }, response: { data: [token], has_more: false, last_id: token.id } },
});

export const revokeAdminToken = defineOperation({
  operationId: 'revokeAdminToken',
  tag: 'Admin',
  summary: 'Revoke a token',
  description: 'It stops working within a second in all processes, and so do its sessions.',
  method: 'delete',
  path: '/admin/tokens/{token_id}',
  auth: 'admin',
  pathParameters: Type.Object({
    token_id: Type.String({ minLength: 1, maxLength: 100, description: 'The name of the token.' }),
  }),
  query: DryRunQuery,
  response: AdminToken,
  additionalResponses: [dryRuns.revokeToken],
  errors: ['not_found', 'validation_failed'],
  example: {
    path: { token_id: token.id },
    response: { ...token, revoked_at: '2026-11-22T10:00:00.000Z' },
  },
});

const AdminSession = Type.Object(
  {
    name: Type.String({ description: 'The name of the token.' }),
    scope: Scope,
    csrf_token: Type.String({ description: 'Send it as `X-CSRF-Token` with each change.' }),
    expires_at: Moment('When the session ends.'),
  },
  { title: 'AdminSession' },
);

const session = {
  name: 'billing-system',
  scope: 'billing',
  csrf_token: 'Zk3v9n1Qw8rT5yU2iO7pA4sD6fG0hJlXcVbNmQwErTy',
  expires_at: '2026-11-21T17:15:04.000Z',
};

export const startAdminSession = defineOperation({
  operationId: 'startAdminSession',
  tag: 'Admin',
  summary: 'Start a session',
  description:
    'For pages: sets the cookie `mg_admin` for eight hours, with the scope of the token. It ends when the token is revoked. ' +
    'Needs the token itself, not a session.',
  method: 'post',
  path: '/admin/session',
  auth: 'admin',
  adminScope: 'read',
  setsCookies: true,
  response: AdminSession,
  errors: [],
  example: { response: session },
});

export const getAdminSession = defineOperation({
  operationId: 'getAdminSession',
  tag: 'Admin',
  summary: 'Get the session',
  description: 'For a page that was reloaded: who is signed in, and the `csrf_token`.',
  method: 'get',
  path: '/admin/session',
  auth: 'admin',
  adminScope: 'read',
  response: AdminSession,
  errors: ['not_found'],
  example: { response: session },
});

export const endAdminSession = defineOperation({
  operationId: 'endAdminSession',
  tag: 'Admin',
  summary: 'End the session',
  description: 'Clears the cookie `mg_admin`.',
  method: 'delete',
  path: '/admin/session',
  auth: 'admin',
  adminScope: 'read',
  setsCookies: true,
  response: Type.Null(),
  status: 204,
  errors: [],
  example: {},
});

const AuditEvent = Type.Object(
  {
    id: Type.String(),
    at: Moment('When the change began.'),
    token: Type.String({ description: 'The name of the token; `command` for the `admin` command.' }),
    os_user: Nullable(Type.String({ description: 'Of a command: the user of the operating system.' })),
    action: Type.String(),
    resource: Type.String({ description: 'Its type, a colon, and its id.' }),
    account_name: AccountName,
    reason: Nullable(
      Type.String({
        description:
          'Why, if the operator gave a reason: `reason` of the call, or `--reason` of the command. Null also for changes of earlier releases.',
      }),
    ),
    outcome: StringEnum(['started', 'done', 'failed'], {
      description: '`started`: how it ended is not known, because the process died or a store failed.',
    }),
    ended_at: OptionalMoment('When the change ended.'),
    before: Nullable(Type.Unsafe<object>({ type: 'object' })),
    after: Nullable(Type.Unsafe<object>({ type: 'object' })),
    error: Nullable(Type.String({ description: 'Why it failed.' })),
    request_id: Nullable(Type.String()),
    address: Nullable(Type.String({ description: 'Of the caller.' })),
  },
  { title: 'AdminAuditEvent' },
);

const event = {
  id: '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2',
  at: '2026-11-21T09:15:04.000Z',
  token: 'billing-system',
  os_user: null,
  action: 'account.credit',
  resource: 'account:0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a',
  account_name: 'Example Ltd',
  reason: 'paid by invoice 17',
  outcome: 'done',
  ended_at: '2026-11-21T09:15:04.012Z',
  before: { balance: 100, free_requests: 0 },
  after: { balance: 150, free_requests: 0, amount: 50 },
  error: null,
  request_id: '019aa6b5-2f4d-7000-8000-000000000000',
  address: '192.0.2.1',
};

export const listAuditEvents = defineOperation({
  operationId: 'listAuditEvents',
  tag: 'Admin',
  summary: 'List the changes of operators',
  description:
    'Every change by the admin API and by the `admin` command, newest first, for 400 days. Secrets are not in it.',
  method: 'get',
  path: '/admin/audit',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object({
    token: Type.Optional(Type.String({ minLength: 1, maxLength: 100, description: 'Only by this token.' })),
    resource: Type.Optional(
      IdInQuery(
        'Only of this resource, such as `account:0f7c2a1e-…`, of this type, such as `account`, or of any type with this id: ' +
          '`:0f7c2a1e-…`. The changes of an account include that it was unlinked from its user.',
        200,
      ),
    ),
    since: TimeBound('A time in RFC 3339 format, or a day (YYYY-MM-DD) in UTC; included.'),
    until: TimeBound('A time, which is not included, or a day, which is.'),
    ...pageQuery,
  }),
  response: PageOfAdmin(AuditEvent),
  errors: [],
  example: { query: { limit: 20 }, response: { data: [event], has_more: false, last_id: event.id } },
});

export const getAuditEvent = defineOperation({
  operationId: 'getAuditEvent',
  tag: 'Admin',
  summary: 'Get a change of an operator',
  method: 'get',
  path: '/admin/audit/{event_id}',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: Type.Object({ event_id: Type.String({ minLength: 1, maxLength: 100 }) }),
  response: AuditEvent,
  errors: ['not_found'],
  example: { path: { event_id: event.id }, response: event },
});
