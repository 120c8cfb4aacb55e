import Type, { type Static } from 'typebox';
import { Nullable } from '../../shared/contract/fields.ts';
import { defineOperation } from '../../shared/contract/operation.ts';
import { captchaChallengeExample, captchaVerifiedExample } from './web-auth-examples.ts';
import { captchaText, SignInPurpose } from './web-auth.ts';

export const ClickCaptchaChallenge = Type.Object(
  {
    challenge_id: Type.String({ description: 'The id of the challenge, to send with the clicks.' }),
    image: Type.String({ description: 'A data URI of the image with icons.' }),
    prompt_image: Type.String({
      description: 'A data URI of the icons to click, in order from left to right.',
    }),
    width: Type.Integer({ description: 'The width of `image`, in pixels.' }),
    height: Type.Integer({ description: 'The height of `image`, in pixels.' }),
    expires_in: Type.Integer({ description: 'How long the challenge is valid, in seconds.' }),
  },
  { title: 'ClickCaptchaChallenge' },
);
export type ClickCaptchaChallenge = Static<typeof ClickCaptchaChallenge>;

export const CaptchaRequest = Type.Object({ purpose: SignInPurpose });
export type CaptchaRequest = Static<typeof CaptchaRequest>;

export const createCaptcha = defineOperation({
  operationId: 'createCaptcha',
  tag: 'Web Auth',
  summary: 'Request a captcha',
  description:
    'Returns an image with icons and a prompt with some of these icons. Click the icons of the prompt in order, and send ' +
    'the positions to `/web/auth/captcha/verify`. Each challenge allows one attempt.',
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
      description: 'The horizontal position: 0 is the left edge of `image`, 10000 the right edge.',
    }),
    y: Type.Number({
      minimum: 0,
      maximum: 10_000,
      description: 'The vertical position: 0 is the top edge of `image`, 10000 the bottom edge.',
    }),
  },
  { title: 'ClickCaptchaPoint' },
);
export type ClickCaptchaPoint = Static<typeof ClickCaptchaPoint>;

export const CaptchaVerification = Type.Object({
  challenge_id: captchaText('The id of the challenge.'),
  points: Type.Array(ClickCaptchaPoint, {
    minItems: 2,
    maxItems: 5,
    description:
      'The positions in `image` of the icons of the prompt: exactly four, in the order of the prompt.',
  }),
});
export type CaptchaVerification = Static<typeof CaptchaVerification>;

export const ClickCaptchaVerified = Type.Object(
  {
    success: Type.Boolean({ description: 'Whether all icons were clicked in the right order.' }),
    captcha_token: Nullable(
      Type.String({
        description:
          'A token for one call of `/web/auth/request-code` within 5 minutes, with the same purpose and from the same IP ' +
          'address; null if `success` is false.',
      }),
    ),
  },
  { title: 'ClickCaptchaVerified' },
);
export type ClickCaptchaVerified = Static<typeof ClickCaptchaVerified>;

export const verifyCaptcha = defineOperation({
  operationId: 'verifyCaptcha',
  tag: 'Web Auth',
  summary: 'Verify a captcha',
  description:
    'Returns `success: false` if the clicks are wrong, or if the challenge is unknown, expired or already used. In that ' +
    'case, request a new challenge.',
  method: 'post',
  path: '/web/auth/captcha/verify',
  auth: 'none',
  body: CaptchaVerification,
  response: ClickCaptchaVerified,
  errors: ['too_many_attempts', 'service_unavailable'],
  example: captchaVerifiedExample,
});
