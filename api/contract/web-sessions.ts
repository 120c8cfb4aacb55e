import Type, { type Static } from 'typebox';
import { Nullable, StringEnum, Time } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import { authResultExample, sessionsExample } from './web-auth-examples.ts';
import { AuthResult } from './web-auth.ts';
import { noSuchSessionText } from '../../shared/contract/web-errors.ts';

export const refreshSession = defineOperation({
  operationId: 'refreshSession',
  tag: 'Web Auth',
  summary: 'Refresh the session',
  description:
    'Takes the cookie `mg_refresh`, and sets both cookies anew. Each refresh token works once: one that comes a second ' +
    'time may have been stolen, and ends its session. So a page must not send two refreshes at once.',
  method: 'post',
  path: '/web/auth/refresh',
  auth: 'refresh',
  setsCookies: true,
  response: AuthResult,
  errors: [],
  example: { response: authResultExample },
});

export const logOut = defineOperation({
  operationId: 'logOut',
  tag: 'Web Auth',
  summary: 'End the session',
  description:
    'If the cookie `mg_session` has expired, `mg_refresh` alone ends its session, and no `X-CSRF-Token` is needed. ' +
    'A 401 means that the session had ended before, and clears both cookies as well.',
  method: 'post',
  path: '/web/auth/logout',
  auth: 'web',
  acceptsRefreshCookie: true,
  setsCookies: true,
  response: Type.Null(),
  status: 204,
  errors: [],
  example: {},
});

export const logOutEverywhere = defineOperation({
  operationId: 'logOutEverywhere',
  tag: 'Web Auth',
  summary: 'End all sessions of the user',
  description: 'Ends the current session as well.',
  method: 'post',
  path: '/web/auth/logout-all',
  auth: 'web',
  setsCookies: true,
  response: Type.Null(),
  status: 204,
  errors: [],
  example: {},
});

export const logOutOthers = defineOperation({
  operationId: 'logOutOthers',
  tag: 'Web Auth',
  summary: 'End all other sessions of the user',
  method: 'post',
  path: '/web/auth/logout-others',
  auth: 'web',
  response: Type.Null(),
  status: 204,
  errors: [],
  example: {},
});

const address = (description: string) => Nullable(Type.String({ description }));

export const Session = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    current: Type.Boolean({ default: false, description: 'Whether it is the session of this call.' }),
    remember_me: Type.Boolean(),
    os_name: Type.String({ description: 'As the browser says; `unknown` where it does not.' }),
    browser_name: Type.String({ description: 'As the browser says; `unknown` where it does not.' }),
    device_type: StringEnum(['desktop', 'mobile', 'tablet', 'unknown']),
    ip_created: address('The address it was started from.'),
    ip_last_used: address('The address it was last used from.'),
    created_at: Time('When it was started, in UTC.'),
    last_used_at: Time('When it was last used, in UTC, updated at most once a minute.'),
    expires_at: Time('When it ends unless it is refreshed, in UTC.'),
  },
  { title: 'Session' },
);
export type Session = Static<typeof Session>;

export const listSessions = defineOperation({
  operationId: 'listSessions',
  tag: 'Web Auth',
  summary: 'List the sessions of the user',
  method: 'get',
  path: '/web/auth/sessions',
  auth: 'web',
  response: Type.Array(Session, { description: 'The last used first.' }),
  errors: [],
  example: { response: sessionsExample },
});

export const SessionPath = Type.Object({
  session_id: Type.String({ format: 'uuid', description: 'The `id` of the session.' }),
});
export type SessionPath = Static<typeof SessionPath>;

export const revokeSession = defineOperation({
  operationId: 'revokeSession',
  tag: 'Web Auth',
  summary: 'End a session of the user',
  description: 'Takes effect immediately.',
  method: 'delete',
  path: '/web/auth/sessions/{session_id}',
  auth: 'web',
  pathParameters: SessionPath,
  response: Type.Null(),
  status: 204,
  errors: ['not_found'],
  errorTexts: { not_found: noSuchSessionText(sessionsExample[0].id) },
  example: { path: { session_id: sessionsExample[0].id } },
});
