// decision 0098
import { AppError } from '../../shared/contract/errors.ts';
import { createRecentEntries } from '../../shared/platform/runtime/recent-entries.ts';
import type { LimitedParty, Limits } from '../account-area/limits.ts';

/** Networks that are known to have used up their limit. */
const maxNetworks = 10_000;
/** Wrong tokens that are known to be counted. */
const maxTokens = 10_000;
/** For how long one of either is not looked up again. */
const rememberedMs = 60_000;
const name = 'wrong-admin-tokens-network';

/**
 * Limits how many different wrong tokens a network may send. Only `ADMIN_TOKEN`, which an operator chose, can be guessed at
 * all; it is compared only within the limit. A named token has 256 random bits, and works whatever others in its network
 * send. A program that goes on sending a token that was replaced does not guess, so it locks out nobody.
 */
export class WrongTokens {
  readonly #limits: Pick<Limits, 'take' | 'check'>;
  /** Errors of networks at their limit, so that a flood costs neither a round trip nor a look-up. */
  readonly #limited = createRecentEntries<string, AppError>(maxNetworks, rememberedMs);
  /** The networks and hashes of tokens that were counted, so that repetitions cost no round trip. */
  readonly #counted = createRecentEntries<string, true>(maxTokens, rememberedMs);

  constructor(limits: Pick<Limits, 'take' | 'check'>) {
    this.#limits = limits;
  }

  /**
   * Call this before a right `ADMIN_TOKEN` is accepted.
   * @throws AppError `too_many_attempts`
   */
  async check(network: string): Promise<void> {
    await this.#use(network, (parties) => this.#limits.check(parties));
  }

  /**
   * Counts a wrong token, once however often it is sent.
   * @param secretHash of the token
   * @throws AppError `too_many_attempts`
   */
  async count(network: string, secretHash: string): Promise<void> {
    const token = `${network} ${secretHash}`;
    if (this.#counted.has(token)) return;
    await this.#use(network, (parties) => this.#limits.take(parties, secretHash));
    this.#counted.set(token, true);
  }

  async #use(network: string, use: (parties: readonly LimitedParty[]) => Promise<void>): Promise<void> {
    const known = this.#limited.get(network);
    if (known !== undefined) throw known;
    try {
      await use([{ name, who: network }]);
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
