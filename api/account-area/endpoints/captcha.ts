import { operations } from '../../contract/operations.ts';
import type { ClickCaptchaChallenge, ClickCaptchaVerified } from '../../contract/web-captcha.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { changeFromPage } from './steps.ts';

export const createCaptcha = defineEndpoint(
  operations.createCaptcha,
  [...changeFromPage, parseBody],
  ({ web: { captcha, limits } }) =>
    async (context) => {
      const { purpose } = context.state.body;
      const network = callerNetwork(context.ip);
      await limits.take([{ name: 'captcha-challenges-network', who: network }]);
      const challenge = await captcha.challenge(purpose, network, context.state.signal);
      context.status = 201;
      context.body = {
        challenge_id: challenge.challengeId,
        image: challenge.image,
        prompt_image: challenge.promptImage,
        width: challenge.width,
        height: challenge.height,
        expires_in: challenge.expiresInSeconds,
      } satisfies ClickCaptchaChallenge;
    },
);

export const verifyCaptcha = defineEndpoint(
  operations.verifyCaptcha,
  [...changeFromPage, parseBody],
  ({ web: { captcha, limits } }) =>
    async (context) => {
      const { challenge_id: challengeId, points } = context.state.body;
      const network = callerNetwork(context.ip);
      await limits.take([{ name: 'captcha-verifications-network', who: network }]);
      const token = await captcha.verify(challengeId, points, network);
      context.body = { success: token !== null, captcha_token: token } satisfies ClickCaptchaVerified;
    },
);
