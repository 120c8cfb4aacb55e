import type { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { formatRub } from '../../shared/pricing/money.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ShardLeases } from '../ledger/shard-leases.ts';

/**
 * Releases reservations whose requests nobody has in hand: their processes died. One that is an orphan at two looks in
 * a row is released, so that a process that was away with Redis has the time to speak up.
 */
export class OrphanSweeper {
  readonly #reservations: ReservationStore;
  readonly #leases: ShardLeases;
  readonly #log: Logger;
  #suspects = new Set<string>();

  constructor(reservations: ReservationStore, leases: ShardLeases, log: Logger) {
    this.#reservations = reservations;
    this.#leases = leases;
    this.#log = log;
  }

  /** One look at the shards that this worker looks after. */
  async sweep(): Promise<void> {
    const suspects = this.#suspects;
    // Where a look fails, the next one begins anew.
    this.#suspects = new Set();
    const found: string[] = [];
    for (const shard of this.#leases.held) {
      const { orphans } = await this.#reservations.findOrphans(shard);
      for (const orphan of orphans) {
        const { requestId, accountId, costNano } = orphan;
        if (!suspects.has(requestId)) found.push(requestId);
        else if (await this.#reservations.releaseOrphan(orphan))
          this.#log.warn(
            { requestId, accountId, reserved: formatRub(costNano) },
            'a reservation whose request is gone was released',
          );
      }
      await this.#reservations.forget(shard);
    }
    this.#suspects = new Set(found);
  }
}
