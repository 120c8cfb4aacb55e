// decision 0069
import type { Config } from '../../shared/platform/config/config.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { callerBlock } from '../http/callers/caller-network.ts';
import { createPartyHash, type HashParty } from './limits.ts';
import { useSlidingWindows, type SlidingWindow } from './sliding-window-script.ts';

const windowSeconds = 86_400;

/** The quota of an IPv4 /24 or an IPv6 /48, as a multiple of that of one of its networks. */
const blockFactor = 3;

/**
 * How many sign-up grants new users of one network get a day: the last bound on what sign-ups cost if somebody automates
 * them. Counted in Redis, as all limits are, exactly across all api processes. If Redis loses its data, counting begins
 * again.
 */
export class GrantQuota {
  readonly #redis: RedisClient;
  readonly #limit: number;
  readonly #hash: HashParty;

  constructor(redis: RedisClient, { masterKey, signup }: Pick<Config, 'masterKey' | 'signup'>) {
    this.#redis = redis;
    this.#limit = signup.grantsPerNetwork;
    this.#hash = createPartyHash(masterKey);
  }

  /**
   * Takes a grant of the network and of the addresses around it. A user who takes again within a day takes the same one.
   * @param network as returned by `callerNetwork`
   * @returns whether there was one left
   */
  async take(userId: string, network: string): Promise<boolean> {
    const block = callerBlock(network);
    const windows = [
      this.#windowOf(network, this.#limit),
      ...(block === network ? [] : [this.#windowOf(block, this.#limit * blockFactor)]),
    ];
    return (await useSlidingWindows(this.#redis, 'take', windows, this.#hash(userId))) === null;
  }

  #windowOf(who: string, limit: number): SlidingWindow {
    return { key: redisKeys.webLimit('signup-grants', this.#hash(who)), limit, windowSeconds };
  }
}
