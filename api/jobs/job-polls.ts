import { setTimeout as delay } from 'node:timers/promises';
import type { JobView } from './job-text.ts';

/** Polls of one account within this time become one look-up. */
const collectMs = 50;
/** Jobs per look-up: as many as on the longest page. */
const maxJobs = 100;

/** Polls that wait for the same look-up. */
interface Batch {
  readonly ids: Set<string>;
  readonly views: Promise<ReadonlyMap<string, JobView>>;
}

/**
 * Looks up jobs that callers follow or wait for. An account may have hundreds of such callers, each of which looks again
 * several times per second. Their look-ups are shared, so that an account causes at most twenty per second in a process.
 */
export class JobPolls {
  readonly #find: (accountId: string, ids: readonly string[]) => Promise<readonly JobView[]>;
  /** By account; those that have not started. */
  readonly #batches = new Map<string, Batch>();

  constructor(find: (accountId: string, ids: readonly string[]) => Promise<readonly JobView[]>) {
    this.#find = find;
  }

  /**
   * Looks up a job once, after a short while. Returns null if the account has no such job.
   * @throws any error of the look-up
   */
  async poll(accountId: string, id: string): Promise<JobView | null> {
    let batch = this.#batches.get(accountId);
    if (batch === undefined) {
      const ids = new Set<string>();
      batch = { ids, views: this.#read(accountId, ids) };
      this.#batches.set(accountId, batch);
    }
    batch.ids.add(id);
    return (await batch.views).get(id) ?? null;
  }

  async #read(accountId: string, ids: ReadonlySet<string>): Promise<ReadonlyMap<string, JobView>> {
    await delay(collectMs);
    // Later polls need a later state.
    this.#batches.delete(accountId);
    const all = [...ids];
    const views = new Map<string, JobView>();
    for (let at = 0; at < all.length; at += maxJobs) {
      for (const view of await this.#find(accountId, all.slice(at, at + maxJobs)))
        views.set(view.job.id, view);
    }
    return views;
  }
}
