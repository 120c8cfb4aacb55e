// decision 0098
import { AppError } from '../../shared/contract/errors.ts';
import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import type { Limits } from '../account-area/limits.ts';

/** Networks that are known to have used up their limit. */
const maxNetworks = 10_000;
/** For how long one is not looked up again. */
const rememberedMs = 60_000;
const name = 'wrong-admin-tokens-network';

/**
 * Limits how many wrong tokens a network may send. Only `ADMIN_TOKEN`, which an operator chose, can be guessed at all; it
 * is compared only within the limit. A named token has 256 random bits, and works whatever others in its network send.
 */
export class WrongTokens {
  readonly #limits: Pick<Limits, 'take' | 'check'>;
  /** Errors of networks at their limit, so that a flood costs neither a round trip nor a look-up. */
  readonly #limited = createRecentEntries<string, AppError>(maxNetworks, rememberedMs);

  constructor(limits: Pick<Limits, 'take' | 'check'>) {
    this.#limits = limits;
  }

  /**
   * Call this before a right `ADMIN_TOKEN` is accepted.
   * @throws AppError `too_many_attempts`
   */
  async check(network: string): Promise<void> {
    await this.#use(network, 'check');
  }

  /** Counts a wrong token. @throws AppError `too_many_attempts` */
  async count(network: string): Promise<void> {
    await this.#use(network, 'take');
  }

  async #use(network: string, use: 'check' | 'take'): Promise<void> {
    const known = this.#limited.get(network);
    if (known !== undefined) throw known;
    try {
      await this.#limits[use]([{ name, who: network }]);
    } catch (error) {
      if (error instanceof AppError && error.code === 'too_many_attempts') this.#remember(network, error);
      throw error;
    }
  }

  /** The error says how long to wait; nothing is remembered for longer. */
  #remember(network: string, error: AppError): void {
    const waitMs = Number(error.headers['retry-after'] ?? 1) * 1_000;
    this.#limited.set(network, error, { ttl: Math.min(rememberedMs, waitMs) });
  }
}
