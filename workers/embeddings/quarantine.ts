/** An account whose input was refused, or counted otherwise than we count it, is likely to send another such. */
const quarantineMs = 60_000;

/** A call of more accounts than this is searched in two steps, so that one bad input does not cost a call for each. */
const maxCohorts = 32;

/** The oldest entries give way: an account that is trusted too soon is found again by its next call. */
const maxEntries = 10_000;

interface QuarantineEntry {
  readonly cohort: number;
  readonly untilMs: number;
  /** Tokens that the account's calls must agree on before it is trusted again. */
  tokensToShow: number;
}

/**
 * Accounts that share calls of one model with nobody outside their cohort, because a vendor refused one of their inputs or
 * counted a call of theirs otherwise than we do. Whose input made a merged count diverge is unknown, so all accounts of
 * that call are quarantined, in up to 32 cohorts: in most cases each alone. Calls of a cohort tell who is at fault. One
 * that agrees with our count vouches for its accounts; one that does not splits its cohort again.
 */
export class Quarantine {
  /** In the order in which they end. */
  readonly #entries = new Map<string, QuarantineEntry>();
  readonly #nowMs: () => number;
  #cohorts = 0;

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Null for accounts that are not quarantined: they share calls with one another. */
  cohortOf(accountId: string): number | null {
    const entry = this.#entries.get(accountId);
    return entry === undefined || entry.untilMs <= this.#nowMs() ? null : entry.cohort;
  }

  /** The vendor refused an input of the account. Inputs that it accepts say nothing of the next, so only time ends this. */
  addRefused(accountId: string): void {
    this.#put(accountId, (this.#cohorts += 1), Infinity);
  }

  /**
   * The vendor's count of a call is not near ours. An account leaves quarantine when its further calls agree on as many
   * tokens as it had in calls that did not: a small input that counts as expected does not vouch for a large one.
   * @param tokensOf own counts, by account
   */
  addDivergent(tokensOf: ReadonlyMap<string, number>): void {
    const perCohort = Math.ceil(tokensOf.size / maxCohorts);
    const firstCohort = this.#cohorts + 1;
    let place = 0;
    for (const [accountId, tokens] of tokensOf) {
      const cohort = firstCohort + Math.floor(place / perCohort);
      this.#put(accountId, cohort, tokens);
      this.#cohorts = cohort;
      place += 1;
    }
  }

  /** The vendor's count of a call is near ours. */
  vouch(tokensOf: ReadonlyMap<string, number>): void {
    if (this.#entries.size === 0) return;
    for (const [accountId, tokens] of tokensOf) {
      const entry = this.#entries.get(accountId);
      if (entry === undefined) continue;
      entry.tokensToShow -= tokens;
      if (entry.tokensToShow <= 0) this.#entries.delete(accountId);
    }
  }

  #put(accountId: string, cohort: number, tokens: number): void {
    const nowMs = this.#nowMs();
    for (const [id, { untilMs }] of this.#entries) {
      if (untilMs > nowMs && this.#entries.size < maxEntries) break;
      this.#entries.delete(id);
    }
    const tokensToShow = (this.#entries.get(accountId)?.tokensToShow ?? 0) + tokens;
    this.#entries.delete(accountId);
    this.#entries.set(accountId, { cohort, untilMs: nowMs + quarantineMs, tokensToShow });
  }
}
