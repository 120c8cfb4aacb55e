// decision 0035
import { createRecentEntries } from '../platform/runtime/recent-entries.ts';
import type { HotAccountStore } from '../accounts/hot-account-store.ts';
import type { AdmittedRequest } from './admitted-request.ts';
import type { Invalidation } from '../platform/redis/invalidation-channel.ts';
import type { Running } from '../platform/runtime/lifecycle.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { runInBackground } from '../platform/runtime/run-in-background.ts';

/**
 * Half of the two seconds within which a ban must take effect, so that one failed lookup does not break that guarantee.
 */
const pollIntervalMs = 1_000;
/**
 * Accounts are looked up in batches, so that a process with many accounts does not queue thousands of commands at once.
 */
const accountsPerBatch = 1_000;

/**
 * How long a ban is cached here. A request admitted just before a ban may start after the ban was handled here. If it
 * starts within `maxStartDelayMs` of its admission, this cache still has the ban; if it starts later, its account is
 * looked up.
 */
const cachedBanMs = 5_000;
const maxCachedBans = 10_000;
const maxStartDelayMs = 2_000;

export interface BanWatchOptions {
  readonly hotAccounts: Pick<HotAccountStore, 'findBanned'>;
  /** Accounts with work running in this process, possibly with duplicates. */
  readonly listAccounts: () => Iterable<string>;
  /** Ends all work of an account in this process. Called repeatedly while the account is listed and banned. */
  readonly endAccount: (accountId: string) => void;
  readonly log: Logger;
}

/**
 * Ends the work of banned accounts that is running in this process. A ban is announced on the invalidation channel and
 * takes effect immediately. Announcements can be missed while a subscription is down, so accounts with running work are
 * also looked up once a second.
 */
export class BanWatch implements Running {
  readonly #options: BanWatchOptions;
  readonly #banned = createRecentEntries<string, true>(maxCachedBans, cachedBanMs);
  readonly #timer: NodeJS.Timeout;
  #isPolling = false;

  constructor(options: BanWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => runInBackground(this.#poll(), 'ban lookup', options.log), pollIntervalMs);
    this.#timer.unref();
  }

  /** @param change from the invalidation channel; null if changes may have been missed */
  async handle(change: Invalidation | null): Promise<void> {
    if (change === null) await this.#poll();
    else if (change.kind === 'account') await this.#lookUp([change.accountId]);
  }

  /** Call this when work starts in this process: its account may have been banned while it waited. */
  checkStarted({ accountId, admittedAtMs }: Pick<AdmittedRequest, 'accountId' | 'admittedAtMs'>): void {
    if (this.#banned.has(accountId)) this.#options.endAccount(accountId);
    else if (Date.now() - admittedAtMs > maxStartDelayMs)
      runInBackground(this.#lookUp([accountId]), 'ban lookup', this.#options.log);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      const accountIds = [...new Set(this.#options.listAccounts())];
      for (let at = 0; at < accountIds.length; at += accountsPerBatch) {
        await this.#lookUp(accountIds.slice(at, at + accountsPerBatch));
      }
    } finally {
      this.#isPolling = false;
    }
  }

  async #lookUp(accountIds: readonly string[]): Promise<void> {
    const { hotAccounts, endAccount, log } = this.#options;
    try {
      const banned = await hotAccounts.findBanned(accountIds);
      for (const accountId of accountIds) {
        if (!banned.has(accountId)) this.#banned.delete(accountId);
        else {
          this.#banned.set(accountId, true);
          endAccount(accountId);
        }
      }
    } catch (error) {
      // The next poll retries within a second.
      log.debug({ err: error }, 'ban lookup failed');
    }
  }
}
