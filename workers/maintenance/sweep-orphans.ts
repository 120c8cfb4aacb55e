// decision 0013
import type { ReservationStore } from '../../shared/money/reservation-store.ts';
import { formatRub } from '../../shared/encoding/money.ts';
import { shardCount } from '../../shared/platform/redis/redis-keys.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { ShardLeases } from '../ledger/shard-leases.ts';

const passesUntilReleased = 3;

/**
 * Releases reservations whose requests no process reports in its heartbeats any more, because their processes died. A
 * reservation is released when three passes in a row find it orphaned, so that a process that lost its connection to
 * Redis has time to report it.
 */
export class OrphanSweeper {
  readonly #reservations: ReservationStore;
  readonly #leases: ShardLeases;
  readonly #log: Logger;
  /** The number of passes in a row that found each reservation orphaned. */
  #orphanPasses = new Map<string, number>();

  constructor(reservations: ReservationStore, leases: ShardLeases, log: Logger) {
    this.#reservations = reservations;
    this.#leases = leases;
    this.#log = log;
  }

  /** Makes one pass over the shards whose leases this worker holds. */
  async sweep(): Promise<void> {
    const previousPasses = this.#orphanPasses;
    // If a pass fails, the number of passes in a row starts over.
    this.#orphanPasses = new Map();
    const orphanPasses = new Map<string, number>();
    for (let shard = 0; shard < shardCount; shard++) {
      if (!(await this.#leases.take(shard))) continue;
      await this.#reservations.correctForClockStep(shard);
      const { orphans, ahead } = await this.#reservations.findOrphans(shard);
      for (const reservation of ahead) await this.#reservations.resetAge(reservation);
      for (const orphan of orphans) {
        const { requestId, accountId, costNano } = orphan;
        const passes = (previousPasses.get(requestId) ?? 0) + 1;
        if (passes < passesUntilReleased) orphanPasses.set(requestId, passes);
        else if (await this.#reservations.releaseOrphan(orphan))
          this.#log.warn(
            { requestId, accountId, reserved: formatRub(costNano) },
            'orphaned reservation released',
          );
      }
      await this.#reservations.forget(shard);
    }
    this.#orphanPasses = orphanPasses;
  }
}
