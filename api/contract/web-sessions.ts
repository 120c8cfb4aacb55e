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
    'Reads the cookie `mg_refresh` and sets both cookies to new values. Each refresh token works once: a token that is ' +
    'sent a second time may have been stolen and ends its session. A page must therefore not send two refreshes at once.',
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
    'If the cookie `mg_session` has expired, `mg_refresh` alone is enough to end its session, without `X-CSRF-Token`. ' +
    'A 401 means that the session had already ended, and also clears both cookies.',
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
    current: Type.Boolean({
      default: false,
      description: 'Whether this is the session of the current call.',
    }),
    remember_me: Type.Boolean(),
    os_name: Type.String({ description: 'As reported by the browser; `unknown` if not reported.' }),
    browser_name: Type.String({ description: 'As reported by the browser; `unknown` if not reported.' }),
    device_type: StringEnum(['desktop', 'mobile', 'tablet', 'unknown']),
    ip_created: address('The IP address from which the session was started.'),
    ip_last_used: address('The IP address from which the session was last used.'),
    created_at: Time('When the session was started, in UTC.'),
    last_used_at: Time('When the session was last used, in UTC. Updated at most once per minute.'),
    expires_at: Time('When the session ends unless it is refreshed, in UTC.'),
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
  response: Type.Array(Session, { description: 'The sessions, most recently used first.' }),
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
