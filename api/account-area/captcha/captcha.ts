// decision 0054
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { callerSite } from '../../http/callers/caller-network.ts';
import { CaptchaPool } from './captcha-pool.ts';
import { captchaSeconds, CaptchaStore, type CaptchaPurpose } from './captcha-store.ts';
import { areOnIcons } from './check-clicks.ts';
import { drawCaptcha, promptCount } from './draw-captcha.ts';
import { imageHeight, imageWidth, type Point } from './place-icons.ts';

export interface CaptchaChallenge {
  readonly challengeId: string;
  /** Data URIs of WebP images. */
  readonly image: string;
  readonly promptImage: string;
  /** Size of the image in pixels. */
  readonly width: number;
  readonly height: number;
  readonly expiresInSeconds: number;
}

/** The click captcha: a person clicks four of eight icons in the order that a second image shows. */
export class Captcha {
  readonly #pool: CaptchaPool;
  readonly #store: CaptchaStore;

  constructor({ redis, log }: { redis: RedisClient; log: Logger }) {
    this.#pool = new CaptchaPool({ draw: drawCaptcha, log });
    this.#store = new CaptchaStore(redis);
  }

  /**
   * @throws AppError `queue_full` if too many callers wait for a captcha in total or from this network's site;
   * `service_unavailable` while Redis is down
   */
  async challenge(purpose: CaptchaPurpose, network: string, signal?: AbortSignal): Promise<CaptchaChallenge> {
    const { image, promptImage, icons } = await this.#pool.take(callerSite(network), signal);
    const solution = icons.slice(0, promptCount);
    return {
      challengeId: await this.#store.addChallenge({ purpose, network, solution }),
      image: formatWebp(image),
      promptImage: formatWebp(promptImage),
      width: imageWidth,
      height: imageHeight,
      expiresInSeconds: captchaSeconds,
    };
  }

  /**
   * Verifies the clicks of a challenge. Every attempt consumes the challenge, even if the clicks are wrong or come from
   * another network.
   * @param points in units of 1/10000 of the image's width and height
   * @returns a token for the challenge's purpose and network; null if the clicks do not solve it
   */
  async verify(challengeId: string, points: readonly Point[], network: string): Promise<string | null> {
    const challenge = await this.#store.takeChallenge(challengeId);
    if (challenge === null || challenge.network !== network) return null;
    return areOnIcons(points, challenge.solution) ? await this.#store.addToken(challenge) : null;
  }

  /**
   * Redeems a token, which is consumed even if it is not valid.
   * @returns whether it is valid for this purpose and network
   */
  async redeemToken(token: string, purpose: CaptchaPurpose, network: string): Promise<boolean> {
    const found = await this.#store.takeToken(token);
    return found !== null && found.purpose === purpose && found.network === network;
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }
}

const formatWebp = (file: Buffer): string => `data:image/webp;base64,${file.toString('base64')}`;
