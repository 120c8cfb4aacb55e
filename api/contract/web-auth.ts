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
    'Whether to sign in or to create a user. `signup` with the address of an existing user signs in.',
});
export type SignInPurpose = Static<typeof SignInPurpose>;

export const Email = Type.String({
  minLength: 3,
  maxLength: 320,
  description: 'An email address. Case is ignored.',
});

/** An id of a captcha, or a proof that one was solved. */
export const captchaText = (description: string) =>
  Type.String({ minLength: 20, maxLength: 128, description });

export const EmailCodeRequested = Type.Object(
  {
    challenge_id: Type.String({ format: 'uuid', description: 'The id to send with the code.' }),
    expires_at: Time('When the code expires, in UTC.'),
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
        'The token from `/web/auth/captcha/verify`. Required if `captcha_required` in `/web/config` is true. Valid for one call.',
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
    'The response is the same whether or not a user with this address exists, but the email differs: if there is no user, ' +
    '`login` sends an email that says so instead of a code. A code works once, expires after 10 minutes and allows 5 ' +
    'attempts. The email is in Russian, or in English if `Accept-Language` prefers it.',
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
      description: 'The IANA time zone name, such as `Europe/Moscow`. Times in responses are always in UTC.',
    }),
    created_at: Time('When the user first signed in, in UTC.'),
    last_login_at: Nullable(Time('When a code of the user was last verified, in UTC.')),
  },
  { title: 'WebUser' },
);
export type WebUser = Static<typeof WebUser>;

const CsrfToken = Type.String({
  description:
    'The token to send as `X-CSRF-Token` with every call in this session that changes data. Each refresh changes it.',
});

export const SignedInUser = Type.Object(
  { ...WebUser.properties, csrf_token: CsrfToken },
  { title: 'SignedInUser' },
);
export type SignedInUser = Static<typeof SignedInUser>;

export const AuthResult = Type.Object({ user: WebUser, csrf_token: CsrfToken }, { title: 'AuthResult' });
export type AuthResult = Static<typeof AuthResult>;

const Timezone = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'An IANA time zone name, such as `Europe/Moscow`.',
});

export const CodeVerification = Type.Object({
  challenge_id: Type.String({
    format: 'uuid',
    description: 'The `challenge_id` from `/web/auth/request-code`.',
  }),
  code: Type.String({ minLength: 1, maxLength: 32, description: 'The six-digit code from the email.' }),
  remember_me: Type.Boolean({
    default: false,
    description: 'Whether the session lasts 30 days from its last refresh instead of 24 hours.',
  }),
  end_other_sessions: Type.Boolean({
    default: false,
    description:
      'Whether to end all other sessions of the user before the new one starts. They then cannot end the new session.',
  }),
  timezone: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 1_024,
        description: 'An IANA time zone name, such as `Europe/Moscow`. Any other value is treated as UTC.',
      }),
    ),
  ),
});
export type CodeVerification = Static<typeof CodeVerification>;

export const verifyCode = defineOperation({
  operationId: 'verifyCode',
  tag: 'Web Auth',
  summary: 'Sign in with an emailed code',
  description:
    'Starts a session: the response sets the cookies `mg_session` (15 minutes) and `mg_refresh`, with the prefix `__Host-` ' +
    'if the service is accessed over https. `timezone` is stored for new users only and ignored for existing ones.',
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
  summary: 'Get the user of the session',
  description:
    'Also returns the `csrf_token`, so that a page that was reloaded need not refresh the session.',
  method: 'get',
  path: '/web/auth/me',
  auth: 'web',
  response: SignedInUser,
  errors: [],
  example: { response: { ...webUserExample, csrf_token: authResultExample.csrf_token } },
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
