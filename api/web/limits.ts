import { createHmac } from 'node:crypto';
import { AppError } from '../../shared/contract/errors.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { deriveKey } from '../../shared/web/derive-key.ts';
import { useSlidingWindows, type SlidingWindow, type WindowUse } from './sliding-window-script.ts';

interface WebLimit {
  readonly limit: number;
  readonly windowSeconds: 60 | 3600;
  /** What the limit counts, in the words of its error message. */
  readonly counted: string;
}

const hour = 3600;
const minute = 60;

/**
 * All limits of the web account area. A network is what `callerNetwork` makes of an address. The limits of codes without a
 * captcha apply in addition to those of mailed codes.
 */
export const webLimits = {
  'mailed-codes-mailbox': { limit: 10, windowSeconds: hour, counted: 'codes mailed to one mailbox' },
  'mailed-codes-network': { limit: 100, windowSeconds: hour, counted: 'codes mailed for one network' },
  'codes-without-captcha-mailbox': {
    limit: 3,
    windowSeconds: hour,
    counted: 'codes mailed to one mailbox without a captcha',
  },
  'codes-without-captcha-network': {
    limit: 10,
    windowSeconds: hour,
    counted: 'codes mailed for one network without a captcha',
  },
  'captcha-challenges-network': { limit: 60, windowSeconds: minute, counted: 'captchas for one network' },
  'captcha-verifications-network': {
    limit: 60,
    windowSeconds: minute,
    counted: 'captcha answers from one network',
  },
  'verify-code-network': { limit: 100, windowSeconds: hour, counted: 'codes entered from one network' },
  'wrong-keys-user': { limit: 10, windowSeconds: hour, counted: 'wrong API keys entered by one user' },
  'wrong-keys-network': {
    limit: 10,
    windowSeconds: hour,
    counted: 'wrong API keys entered from one network',
  },
} as const satisfies Record<string, WebLimit>;

export type WebLimitName = keyof typeof webLimits;

/** A limit and whom it is counted for: a mailbox, a user's id or a network. Each pair may occur once in a call. */
export interface LimitedParty {
  readonly name: WebLimitName;
  readonly who: string;
}

/** Limits against abuse, exact over all api processes. */
export class Limits {
  readonly #redis: RedisClient;
  readonly #hashKey: Buffer;

  constructor(redis: RedisClient, masterKey: string) {
    this.#redis = redis;
    this.#hashKey = deriveKey(masterKey, 'web limits');
  }

  /**
   * Counts an attempt against all of these limits, or against none of them if one is reached.
   * @throws AppError `too_many_attempts`
   */
  async take(parties: readonly LimitedParty[]): Promise<void> {
    await this.#refuseWhereFull('take', parties);
  }

  /**
   * Refuses if a limit is reached, and counts nothing. For limits that count failures only, together with `count`: attempts
   * that are in flight at the same time can exceed such a limit.
   * @throws AppError `too_many_attempts`
   */
  async check(parties: readonly LimitedParty[]): Promise<void> {
    await this.#refuseWhereFull('check', parties);
  }

  /** Counts a failure against all of these limits, even if one is reached. */
  async count(parties: readonly LimitedParty[]): Promise<void> {
    await useSlidingWindows(this.#redis, 'count', this.#windowsOf(parties));
  }

  async #refuseWhereFull(use: WindowUse, parties: readonly LimitedParty[]): Promise<void> {
    const full = await useSlidingWindows(this.#redis, use, this.#windowsOf(parties));
    if (full !== null) throw refuse(webLimits[parties[full.index]!.name], full.waitMs);
  }

  #windowsOf(parties: readonly LimitedParty[]): SlidingWindow[] {
    return parties.map(({ name, who }) => {
      const { limit, windowSeconds } = webLimits[name];
      return { key: redisKeys.webLimit(name, this.#hash(who)), limit, windowSeconds };
    });
  }

  /** A keyed hash: a plain hash of a mailbox or an address can be reversed by trying candidates. */
  #hash(who: string): string {
    return createHmac('sha256', this.#hashKey).update(who).digest('base64url');
  }
}

function refuse({ limit, windowSeconds, counted }: WebLimit, waitMs: number): AppError {
  const waitSeconds = Math.ceil(waitMs / 1_000);
  const period = windowSeconds === hour ? 'hour' : 'minute';
  return new AppError('too_many_attempts', {
    message: `The limit of ${limit} ${counted} per ${period} is reached. Try again in ${waitSeconds} s.`,
    headers: { 'retry-after': String(waitSeconds) },
  });
}
