import Type, { type Static } from 'typebox';
import { Nullable, StringEnum, Time } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import { authResultExample, codeRequestedExample, webUserExample } from './web-auth-examples.ts';

/** How long a mailed code is valid. */
export const codeLifetimeSeconds = 600;
/** How many tries a mailed code allows, right or wrong. */
export const maxCodeAttempts = 5;

export const SignInPurpose = StringEnum(['login', 'signup'], {
  description:
    'Whether the caller means to sign in, or to create a user. `signup` with a known address signs in.',
});
export type SignInPurpose = Static<typeof SignInPurpose>;

export const Email = Type.String({
  minLength: 3,
  maxLength: 320,
  description: 'An email address. The case of its letters does not matter.',
});

/** An id of a captcha, or a proof that one was solved. */
export const captchaText = (description: string) =>
  Type.String({ minLength: 20, maxLength: 128, description });

export const EmailCodeRequested = Type.Object(
  {
    challenge_id: Type.String({ format: 'uuid', description: 'To be sent with the code.' }),
    expires_at: Time('Until when the code can be used, in UTC.'),
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
    created_at: Time('When the user first signed in, in UTC.'),
    last_login_at: Nullable(Time('When a code of the user was last verified, in UTC.')),
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
  end_other_sessions: Type.Boolean({
    default: false,
    description:
      'Whether all other sessions of the user are ended, before the new one is started. None of them can end the new one.',
  }),
  timezone: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 1_024,
        description:
          'An IANA name, such as `Europe/Moscow`. Anything else is taken for UTC: a browser may not know its time zone.',
      }),
    ),
  ),
});
export type CodeVerification = Static<typeof CodeVerification>;

export const verifyCode = defineOperation({
  operationId: 'verifyCode',
  tag: 'Web Auth',
  summary: 'Sign in with a mailed code',
  description:
    'Starts a session: the answer sets the cookies `mg_session` (15 minutes) and `mg_refresh`, with the prefix `__Host-` ' +
    'where the service is reached by https. `timezone` is stored for new users only; for others it is ignored.',
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
