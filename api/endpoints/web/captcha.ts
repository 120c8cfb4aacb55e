import type {
  CaptchaRequest,
  CaptchaVerification,
  ClickCaptchaChallenge,
  ClickCaptchaVerified,
} from '../../../shared/contract/web-captcha.ts';
import { callerNetwork } from '../../callers/caller-network.ts';
import { callerSignal } from '../../middleware/caller-signal.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import type { Services } from '../../services.ts';

export function createCaptcha({ web: { captcha, limits } }: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { purpose } = context.state.body as CaptchaRequest;
    const network = callerNetwork(context.ip);
    await limits.take([{ name: 'captcha-challenges-network', who: network }]);
    const challenge = await captcha.challenge(purpose, network, callerSignal(context.res));
    context.status = 201;
    context.body = {
      challenge_id: challenge.challengeId,
      image: challenge.image,
      prompt_image: challenge.promptImage,
      width: challenge.width,
      height: challenge.height,
      expires_in: challenge.expiresInSeconds,
    } satisfies ClickCaptchaChallenge;
  };
}

export function verifyCaptcha({ web: { captcha, limits } }: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { challenge_id: challengeId, points } = context.state.body as CaptchaVerification;
    const network = callerNetwork(context.ip);
    await limits.take([{ name: 'captcha-verifications-network', who: network }]);
    const token = await captcha.verify(challengeId, points, network);
    context.body = { success: token !== null, captcha_token: token } satisfies ClickCaptchaVerified;
  };
}
