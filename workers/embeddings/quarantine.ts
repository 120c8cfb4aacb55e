// decision 0027
/**
 * How long an account is quarantined if it is likely to send another bad input, because one was rejected or because the
 * vendor may count its tokens differently from us.
 */
const quarantineMs = 60_000;

/**
 * How long an account is quarantined if the vendor counted its tokens differently from us in a call without other
 * accounts. This may be long, because isolation costs the account little and does not affect others.
 */
const provenQuarantineMs = 10 * 60_000;

/**
 * A call with more accounts than this is searched in two steps, so that one bad input does not cost one call
 * per account.
 */
const maxCohorts = 32;

/** The oldest entries are evicted. An account evicted too soon is detected again by its calls. */
const maxEntries = 10_000;

interface QuarantineEntry {
  readonly cohort: number;
  readonly untilMs: number;
  /** Number of tokens that must still appear in calls whose counts agree before the account is trusted again. */
  tokensToVerify: number;
}

/** An update of an account's entry. */
interface Addition {
  readonly cohort: number;
  /** Tokens to verify in addition to those already required. */
  readonly tokens: number;
  readonly durationMs: number;
}

/**
 * Accounts that share calls of one model only within their cohort, because a vendor rejected one of their inputs or
 * counted the tokens of one of their calls differently from us. When the counts of a merged call diverge, it is unknown
 * which input caused it, so all accounts of that call are quarantined, in up to 32 cohorts: usually one account each.
 * The calls of a cohort show which account is at fault. A call whose count agrees with ours clears its accounts step by
 * step. A call whose count diverges splits its cohort again or, if it had only one account, identifies that account.
 */
export class Quarantine {
  /** Ordered by their last update. */
  readonly #entries = new Map<string, QuarantineEntry>();
  readonly #nowMs: () => number;
  #cohorts = 0;

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Returns null for accounts that are not quarantined; they share calls with one another. */
  cohortOf(accountId: string): number | null {
    const entry = this.#entries.get(accountId);
    return entry === undefined || entry.untilMs <= this.#nowMs() ? null : entry.cohort;
  }

  /**
   * Quarantines an account after the vendor rejected one of its inputs. Accepted inputs do not predict the next
   * one, so only time ends the quarantine.
   */
  addRejected(accountId: string): void {
    this.#putAlone(accountId, Infinity, quarantineMs);
  }

  /** Isolates the account's inputs until calls with this many tokens agree with our count. */
  addCheck(accountId: string, tokens: number): void {
    this.#putAlone(accountId, tokens, quarantineMs);
  }

  /**
   * Quarantines the accounts of a call whose tokens the vendor counted very differently from us. If the call had only
   * one account, that account is proven to send such inputs. Its next inputs do not change that, so only time ends the
   * quarantine. With several accounts, each is released when its later calls agree on as many tokens as it had in the
   * calls that diverged: a small input whose count agrees proves nothing about a large one.
   * @param tokensOf our own token counts, by account
   */
  addDivergentCall(tokensOf: ReadonlyMap<string, number>): void {
    if (tokensOf.size === 1) {
      for (const accountId of tokensOf.keys()) this.#putAlone(accountId, Infinity, provenQuarantineMs);
      return;
    }
    const perCohort = Math.ceil(tokensOf.size / maxCohorts);
    const firstCohort = this.#cohorts + 1;
    let index = 0;
    for (const [accountId, tokens] of tokensOf) {
      const cohort = firstCohort + Math.floor(index / perCohort);
      this.#put(accountId, { cohort, tokens, durationMs: quarantineMs });
      this.#cohorts = cohort;
      index += 1;
    }
  }

  /** Records that the vendor's count of a call agrees with ours. */
  vouch(tokensOf: ReadonlyMap<string, number>): void {
    if (this.#entries.size === 0) return;
    for (const [accountId, tokens] of tokensOf) {
      const entry = this.#entries.get(accountId);
      if (entry === undefined) continue;
      entry.tokensToVerify -= tokens;
      if (entry.tokensToVerify <= 0) this.#entries.delete(accountId);
    }
  }

  #putAlone(accountId: string, tokens: number, durationMs: number): void {
    this.#put(accountId, { cohort: (this.#cohorts += 1), tokens, durationMs });
  }

  #put(accountId: string, { cohort, tokens, durationMs }: Addition): void {
    const nowMs = this.#nowMs();
    for (const [id, { untilMs }] of this.#entries) {
      if (untilMs > nowMs && this.#entries.size < maxEntries) break;
      this.#entries.delete(id);
    }
    const previous = this.#entries.get(accountId);
    this.#entries.delete(accountId);
    const isExpired = previous === undefined || previous.untilMs <= nowMs;
    this.#entries.set(accountId, {
      cohort,
      untilMs: Math.max(nowMs + durationMs, isExpired ? 0 : previous.untilMs),
      tokensToVerify: tokens + (isExpired ? 0 : previous.tokensToVerify),
    });
  }
}
