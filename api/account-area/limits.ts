import { createHmac } from 'node:crypto';
import { AppError } from '../../shared/contract/errors.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { deriveKey } from '../../shared/account-area/derive-key.ts';
import { callerSite } from '../http/callers/caller-network.ts';
import { useSlidingWindows, type SlidingWindow, type WindowUse } from './sliding-window-script.ts';

interface WebLimit {
  readonly limit: number;
  readonly windowSeconds: keyof typeof periodNames;
  /** The kind of party that the limit applies to. The limit's name ends with it. */
  readonly party: 'mailbox' | 'user' | 'network';
  /** The attempts that the limit restricts, as worded in its error message. */
  readonly counted: string;
  /** The limit of an IPv6 site, as a multiple of the limit of a network. */
  readonly siteFactor?: number;
}

const day = 86_400;
const hour = 3600;
const minute = 60;
const periodNames = { [day]: 'day', [hour]: 'hour', [minute]: 'minute' } as const;

/** The default. High, because many people can share a /48. */
const defaultSiteFactor = 10;

/** For limits on guessing codes. Lower than the default, because one person can easily get a /48. */
const guessingSiteFactor = 2;

/**
 * All limits of the web account area. A network is the result of `callerNetwork` for an address. For IPv6, a multiple
 * of the limit also applies to the network's site (`callerSite`), because one customer can have 65 536 networks. Codes
 * that are mailed without a captcha are subject to the limits of mailed codes as well as their own.
 */
export const webLimits = {
  'mailed-codes-mailbox': {
    limit: 10,
    windowSeconds: hour,
    party: 'mailbox',
    counted: 'codes sent to one mailbox',
  },
  'mailed-codes-network': {
    limit: 100,
    windowSeconds: hour,
    party: 'network',
    counted: 'codes requested from one network',
    siteFactor: guessingSiteFactor,
  },
  'codes-without-captcha-mailbox': {
    limit: 3,
    windowSeconds: hour,
    party: 'mailbox',
    counted: 'codes sent to one mailbox without a captcha',
  },
  'codes-without-captcha-network': {
    limit: 10,
    windowSeconds: hour,
    party: 'network',
    counted: 'codes requested from one network without a captcha',
  },
  'confirmation-codes-user': {
    limit: 10,
    windowSeconds: hour,
    party: 'user',
    counted: 'confirmation codes requested by one user',
  },
  'captcha-challenges-network': {
    limit: 60,
    windowSeconds: minute,
    party: 'network',
    counted: 'captchas requested from one network',
  },
  'captcha-verifications-network': {
    limit: 60,
    windowSeconds: minute,
    party: 'network',
    counted: 'captcha answers from one network',
  },
  'wrong-codes-network': {
    limit: 100,
    windowSeconds: hour,
    party: 'network',
    counted: 'incorrect codes entered from one network',
    siteFactor: guessingSiteFactor,
  },
  'wrong-keys-user': {
    limit: 10,
    windowSeconds: hour,
    party: 'user',
    counted: 'incorrect API keys entered by one user',
  },
  'wrong-keys-network': {
    limit: 100,
    windowSeconds: hour,
    party: 'network',
    counted: 'incorrect API keys entered from one network',
  },
  'wrong-admin-tokens-network': {
    limit: 100,
    windowSeconds: hour,
    party: 'network',
    counted: 'different wrong tokens of the admin API from one network',
    siteFactor: guessingSiteFactor,
  },
  'first-accounts-network': {
    limit: 100,
    windowSeconds: day,
    party: 'network',
    counted: 'first accounts created from one network',
  },
  'daily-changes-user': {
    limit: 2_000,
    windowSeconds: day,
    party: 'user',
    counted: 'changes made by one user',
  },
  'changes-user': { limit: 300, windowSeconds: minute, party: 'user', counted: 'changes made by one user' },
} as const satisfies Record<string, WebLimit>;

export type WebLimitName = keyof typeof webLimits;

/** A limit and its party: a mailbox, a user's id or a network. Each pair may occur once per call. */
export interface LimitedParty {
  readonly name: WebLimitName;
  readonly who: string;
}

/** A sliding window to which an attempt is added, and its limit. */
interface LimitedWindow {
  readonly window: SlidingWindow;
  readonly rule: WebLimit;
}

export type HashParty = (who: string) => string;

/** Returns a keyed hash: a plain hash of a mailbox or an address can be reversed by trying candidates. */
export function createPartyHash(masterKey: string, purpose = 'web limits'): HashParty {
  const hashKey = deriveKey(masterKey, purpose);
  return (who) => createHmac('sha256', hashKey).update(who).digest('base64url');
}

/** Abuse limits, exact across all api processes. */
export class Limits {
  readonly #redis: RedisClient;
  readonly #hash: HashParty;

  constructor(redis: RedisClient, masterKey: string) {
    this.#redis = redis;
    this.#hash = createPartyHash(masterKey);
  }

  /**
   * Adds an attempt to all of these limits, or to none of them if one is reached.
   * @param attempt what was attempted, so that its repetitions count once; by default, every attempt is a new one. Only a
   * keyed hash of it is stored
   * @throws AppError `too_many_attempts`
   */
  async take(parties: readonly LimitedParty[], attempt?: string): Promise<void> {
    await this.#throwIfFull('take', parties, attempt);
  }

  /**
   * Fails if a limit is reached, without adding an attempt. Used together with `count` for limits on failures only.
   * Concurrent attempts can exceed limits that are used in this way.
   * @throws AppError `too_many_attempts`
   */
  async check(parties: readonly LimitedParty[]): Promise<void> {
    await this.#throwIfFull('check', parties);
  }

  /** Adds a failure to all of these limits, even if one is reached. */
  async count(parties: readonly LimitedParty[]): Promise<void> {
    const windows = this.#windowsOf(parties).map(({ window }) => window);
    await useSlidingWindows(this.#redis, 'count', windows);
  }

  async #throwIfFull(use: WindowUse, parties: readonly LimitedParty[], attempt?: string): Promise<void> {
    const limited = this.#windowsOf(parties);
    const windows = limited.map(({ window }) => window);
    const member = attempt === undefined ? undefined : this.#hash(attempt);
    const full = await useSlidingWindows(this.#redis, use, windows, member);
    if (full !== null) throw limitReached(limited[full.index]!.rule, full.waitMs);
  }

  #windowsOf(parties: readonly LimitedParty[]): LimitedWindow[] {
    return parties.flatMap(({ name, who }) => {
      const rule: WebLimit = webLimits[name];
      const window = this.#windowOf(name, who, rule);
      const site = rule.party === 'network' ? callerSite(who) : who;
      return site === who ? [window] : [window, this.#windowOf(name, site, toSiteLimit(rule))];
    });
  }

  #windowOf(name: WebLimitName, who: string, rule: WebLimit): LimitedWindow {
    const { limit, windowSeconds } = rule;
    return { window: { key: redisKeys.webLimit(name, this.#hash(who)), limit, windowSeconds }, rule };
  }
}

function toSiteLimit({ siteFactor = defaultSiteFactor, ...rule }: WebLimit): WebLimit {
  return { ...rule, limit: rule.limit * siteFactor, counted: `${rule.counted} (an IPv6 /48)` };
}

function limitReached({ limit, windowSeconds, counted }: WebLimit, waitMs: number): AppError {
  const waitSeconds = Math.ceil(waitMs / 1_000);
  return new AppError('too_many_attempts', {
    message: `The limit of ${limit} ${counted} per ${periodNames[windowSeconds]} has been reached. Try again in ${waitSeconds} s.`,
    messageRu: `Слишком много попыток. Повторите через ${waitSeconds} с.`,
    headers: { 'retry-after': String(waitSeconds) },
  });
}
