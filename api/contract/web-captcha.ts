import Type, { type Static } from 'typebox';
import { Nullable } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import { captchaChallengeExample, captchaVerifiedExample } from './web-auth-examples.ts';
import { captchaText, SignInPurpose } from './web-auth.ts';

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
    description: 'Where the icons of the prompt are in `image`: exactly four, in the order of the prompt.',
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
