import Type, { type Static } from 'typebox';
import { Nullable, StringEnum } from './fields.ts';
import { defineOperation } from './operation.ts';
import {
  authResultExample,
  captchaChallengeExample,
  captchaVerifiedExample,
  codeRequestedExample,
  sessionsExample,
  webUserExample,
} from './web-auth-examples.ts';

const time = (description: string) => Type.String({ format: 'date-time', description });

/** How long a mailed code is good for. */
export const codeLifetimeSeconds = 600;
/** How often a mailed code may be typed, right or wrong. */
export const maxCodeAttempts = 5;

const SignInPurpose = StringEnum(['login', 'signup'], {
  description:
    'Whether the caller means to sign in, or to create a user. `signup` with a known address signs in.',
});
export type SignInPurpose = Static<typeof SignInPurpose>;

export const Email = Type.String({
  minLength: 3,
  maxLength: 320,
  description: 'An email address. The case of its letters does not matter.',
});

export const ClickCaptchaChallenge = Type.Object(
  {
    challenge_id: Type.String({ description: 'Names the challenge when its clicks are verified.' }),
    image: Type.String({ description: 'A data URI: icons scattered over noise.' }),
    prompt_image: Type.String({
      description: 'A data URI: which icons to click, in this order from left to right.',
    }),
    width: Type.Integer({ description: 'Of `image`, in pixels.' }),
    height: Type.Integer({ description: 'Of `image`, in pixels.' }),
    expires_in: Type.Integer({ description: 'How long the challenge can be answered, in seconds.' }),
  },
  { title: 'ClickCaptchaChallenge' },
);
export type ClickCaptchaChallenge = Static<typeof ClickCaptchaChallenge>;

export const CaptchaRequest = Type.Object({ purpose: SignInPurpose });
export type CaptchaRequest = Static<typeof CaptchaRequest>;

export const createCaptcha = defineOperation({
  operationId: 'createCaptcha',
  tag: 'Web Auth',
  summary: 'Ask for a captcha',
  description:
    'A picture with icons, and a prompt with some of them. Click those of the prompt in its order, and send the places ' +
    'to `/web/auth/captcha/verify`. Each challenge can be tried once.',
  method: 'post',
  path: '/web/auth/captcha/challenge',
  auth: 'none',
  body: CaptchaRequest,
  response: ClickCaptchaChallenge,
  status: 201,
  errors: ['too_many_attempts', 'queue_full', 'service_unavailable'],
  example: captchaChallengeExample,
});

const captchaText = (description: string) => Type.String({ minLength: 20, maxLength: 128, description });

export const ClickCaptchaPoint = Type.Object(
  {
    x: Type.Number({
      minimum: 0,
      maximum: 10_000,
      description: 'From the left edge of `image`: 0 to 10000, which is the right edge.',
    }),
    y: Type.Number({
      minimum: 0,
      maximum: 10_000,
      description: 'From the upper edge of `image`: 0 to 10000, which is the lower edge.',
    }),
  },
  { title: 'ClickCaptchaPoint' },
);
export type ClickCaptchaPoint = Static<typeof ClickCaptchaPoint>;

export const CaptchaVerification = Type.Object({
  challenge_id: captchaText('Of the challenge.'),
  points: Type.Array(ClickCaptchaPoint, {
    minItems: 2,
    maxItems: 5,
    description: 'Where the icons of the prompt are in `image`, in the order of the prompt.',
  }),
});
export type CaptchaVerification = Static<typeof CaptchaVerification>;

export const ClickCaptchaVerified = Type.Object(
  {
    success: Type.Boolean({ description: 'Whether all icons were hit, in the right order.' }),
    captcha_token: Nullable(
      Type.String({
        description:
          'For one call of `/web/auth/request-code`, within 5 minutes, with the same purpose and from the same address; ' +
          'null without success.',
      }),
    ),
  },
  { title: 'ClickCaptchaVerified' },
);
export type ClickCaptchaVerified = Static<typeof ClickCaptchaVerified>;

export const verifyCaptcha = defineOperation({
  operationId: 'verifyCaptcha',
  tag: 'Web Auth',
  summary: 'Answer a captcha',
  description:
    'Clicks that are wrong, and challenges that are unknown, expired or were tried before, are answered with ' +
    '`success: false`: ask for another challenge.',
  method: 'post',
  path: '/web/auth/captcha/verify',
  auth: 'none',
  body: CaptchaVerification,
  response: ClickCaptchaVerified,
  errors: ['too_many_attempts', 'service_unavailable'],
  example: captchaVerifiedExample,
});

export const EmailCodeRequested = Type.Object(
  {
    challenge_id: Type.String({ format: 'uuid', description: 'To be sent with the code.' }),
    expires_at: time('Until when the code can be used, in UTC.'),
  },
  { title: 'EmailCodeRequested' },
);
export type EmailCodeRequested = Static<typeof EmailCodeRequested>;

export const CodeRequest = Type.Object({
  email: Email,
  purpose: Type.Unsafe<SignInPurpose>({ ...SignInPurpose, default: 'login' }),
  captcha_token: Type.Optional(
    Nullable(
      captchaText(
        'Of `/web/auth/captcha/verify`. Needed where `captcha_required` of `/web/config` is true. Used up by this call.',
      ),
    ),
  ),
});
export type CodeRequest = Static<typeof CodeRequest>;

export const requestCode = defineOperation({
  operationId: 'requestCode',
  tag: 'Web Auth',
  summary: 'Request a sign-in code',
  description:
    'The answer is the same whether there is a user of this address or not. What is mailed is not: to an address without ' +
    'a user, `login` sends no code, but a mail that says so. A code works once, for 10 minutes, and can be typed 5 times. ' +
    'The mail is in Russian, or English if `Accept-Language` prefers it.',
  method: 'post',
  path: '/web/auth/request-code',
  auth: 'none',
  body: CodeRequest,
  response: EmailCodeRequested,
  status: 201,
  errors: ['captcha_failed', 'too_many_attempts', 'service_unavailable'],
  example: codeRequestedExample,
});

export const WebUser = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    email: Type.String(),
    timezone: Type.String({
      description: 'An IANA name, such as `Europe/Moscow`. Times of answers are in UTC all the same.',
    }),
    created_at: time('When the user first signed in, in UTC.'),
    last_login_at: Nullable(time('When a code of the user was last verified, in UTC.')),
  },
  { title: 'WebUser' },
);
export type WebUser = Static<typeof WebUser>;

export const AuthResult = Type.Object(
  {
    user: WebUser,
    csrf_token: Type.String({
      description: 'To be sent as `X-CSRF-Token` with every call of this session that changes something.',
    }),
  },
  { title: 'AuthResult' },
);
export type AuthResult = Static<typeof AuthResult>;

const Timezone = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'An IANA name, such as `Europe/Moscow`.',
});

export const CodeVerification = Type.Object({
  challenge_id: Type.String({ format: 'uuid', description: 'Of `/web/auth/request-code`.' }),
  code: Type.String({ minLength: 1, maxLength: 32, description: 'The six digits of the mail.' }),
  remember_me: Type.Boolean({
    default: false,
    description: 'Whether the session lasts for 30 days from its last refresh, in place of 24 hours.',
  }),
  timezone: Type.Optional(Nullable(Timezone)),
});
export type CodeVerification = Static<typeof CodeVerification>;

export const verifyCode = defineOperation({
  operationId: 'verifyCode',
  tag: 'Web Auth',
  summary: 'Sign in with a mailed code',
  description:
    'Starts a session: the answer sets the cookies `mg_session` (15 minutes) and `mg_refresh`, with the prefix `__Host-` ' +
    'where the service is reached by https. `timezone` is that of a new user, and changes nothing of one that exists.',
  method: 'post',
  path: '/web/auth/verify-code',
  auth: 'none',
  setsCookies: true,
  body: CodeVerification,
  response: AuthResult,
  errors: ['invalid_code', 'account_banned', 'too_many_attempts', 'service_unavailable'],
  example: {
    body: {
      challenge_id: codeRequestedExample.response.challenge_id,
      code: '042317',
      remember_me: true,
      timezone: 'Europe/Moscow',
    },
    response: authResultExample,
  },
});

export const getWebUser = defineOperation({
  operationId: 'getWebUser',
  tag: 'Web Auth',
  summary: 'Show the user of the session',
  method: 'get',
  path: '/web/auth/me',
  auth: 'web',
  response: WebUser,
  errors: [],
  example: { response: webUserExample },
});

export const WebUserChange = Type.Object({ timezone: Timezone });
export type WebUserChange = Static<typeof WebUserChange>;

export const updateWebUser = defineOperation({
  operationId: 'updateWebUser',
  tag: 'Web Auth',
  summary: 'Set the time zone of the user',
  method: 'patch',
  path: '/web/auth/me',
  auth: 'web',
  body: WebUserChange,
  response: WebUser,
  errors: [],
  example: { body: { timezone: 'Europe/Moscow' }, response: webUserExample },
});

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
  method: 'post',
  path: '/web/auth/logout',
  auth: 'web',
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
    created_at: time('When it was started, in UTC.'),
    last_used_at: time('When it was last used, in UTC, updated at most once a minute.'),
    expires_at: time('When it ends unless it is refreshed, in UTC.'),
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
  example: { path: { session_id: sessionsExample[0].id } },
});
