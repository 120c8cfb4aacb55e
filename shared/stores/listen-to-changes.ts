import type { BanWatch } from '../money/ban-watch.ts';
import { listenToInvalidations } from '../platform/redis/invalidation-channel.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import { runInBackground } from '../platform/runtime/run-in-background.ts';
import type { Stores } from './open-stores.ts';

export interface ChangeListener {
  readonly bans: Pick<BanWatch, 'handle'>;
  /** @param accountId null if any account may have changed */
  readonly onAccountChange?: (accountId: string | null) => void;
  readonly log: Logger;
}

/** Applies changes made in any process to this one: bans, keys and limits of accounts, and disabled models. */
export function listenToChanges(
  { subscriber, catalog }: Pick<Stores, 'subscriber' | 'catalog'>,
  { bans, onAccountChange, log }: ChangeListener,
): void {
  listenToInvalidations(subscriber, (change) => {
    runInBackground(bans.handle(change), 'ban look-up', log);
    if (change?.kind !== 'models') onAccountChange?.(change === null ? null : change.accountId);
    if (change !== null && change.kind !== 'models') return;
    catalog
      .refreshDisabled()
      .catch((error: unknown) => log.warn({ err: error }, 'reading the disabled models failed'));
  });
}
