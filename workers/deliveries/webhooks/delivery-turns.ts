import { DelayedError, type Job as BullJob } from 'bullmq';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import type { WebhookDelivery } from '../../../shared/work/webhook-delivery.ts';
import { limitedLanes, type DeliveryLanes, type DeliveryLane, type LimitedLane } from './delivery-lanes.ts';
import type { ReceiverOutcome, ReceiverStanding } from './receiver-records.ts';
import type { WaitingDeliveries } from './waiting-deliveries.ts';

/**
 * Delays deliveries for which this process has no place, and wakes waiting ones when it has. A failure is only logged:
 * a delivery that nothing wakes is retried after its delay.
 */
export class DeliveryTurns {
  readonly #lanes: DeliveryLanes;
  readonly #waiting: WaitingDeliveries;
  readonly #log: Logger;

  constructor(lanes: DeliveryLanes, waiting: WaitingDeliveries, log: Logger) {
    this.#lanes = lanes;
    this.#waiting = waiting;
    this.#log = log;
  }

  /**
   * Delays the delivery until it is woken.
   * @param minPauseMs the delay if only a few deliveries wait
   * @throws DelayedError which tells BullMQ that the delivery was put back
   */
  async putBack(
    bullJob: BullJob<WebhookDelivery>,
    token: string | undefined,
    lane: DeliveryLane,
    minPauseMs: number,
  ): Promise<never> {
    const { accountId, jobId } = bullJob.data;
    // BullMQ uses a separate connection, which may work when this one does not.
    const pauseMs = await this.#waiting.readPauseMs(accountId, lane, minPauseMs).catch(() => minPauseMs);
    await bullJob.moveToDelayed(Date.now() + pauseMs, token);
    try {
      await this.#waiting.join(bullJob, lane);
    } catch (error) {
      this.#log.warn(
        { jobId, err: error },
        'registering a delayed webhook failed; it is retried after its delay',
      );
    }
    throw new DelayedError();
  }

  /** Call after a delivery has been put back: its place may have become free before it joined those that wait. */
  async recheck(accountId: string, lane: DeliveryLane): Promise<void> {
    if (!this.#lanes.canBegin(accountId, lane)) return;
    if (lane === 'prompt') await this.#wakeOwn(accountId, [lane]);
    else await this.fill(lane, 1);
  }

  /** Call when an attempt has ended. */
  async wakeAfter(
    accountId: string,
    standing: ReceiverStanding,
    outcome: ReceiverOutcome | null,
  ): Promise<void> {
    const { lane } = standing;
    const wokeOwn =
      this.#lanes.isBelowAccountLimit(accountId, 'prompt') &&
      (await this.#wakeOwn(accountId, lanesToWake(standing, outcome)));
    if (lane !== 'prompt') await this.fill(lane, 1, wokeOwn ? [accountId] : []);
  }

  /**
   * Wakes deliveries of the next accounts, at most as many as this process has places for.
   * @param exceptAccounts accounts that get no turn
   */
  async fill(lane: LimitedLane, max: number, exceptAccounts: readonly string[] = []): Promise<void> {
    const count = Math.min(max, this.#lanes.countFree(lane));
    if (count <= 0) return;
    const busyAccounts = [...this.#lanes.listBusyAccounts(lane), ...exceptAccounts];
    await this.#waiting.wakeTurns(lane, count, busyAccounts).catch((error: unknown) => {
      this.#logFailure(error, { lane });
    });
  }

  /** Uses all free places. */
  async fillAll(): Promise<void> {
    await Promise.all(limitedLanes.map((lane) => this.fill(lane, Infinity)));
  }

  async #wakeOwn(accountId: string, lanes: readonly DeliveryLane[]): Promise<boolean> {
    try {
      return await this.#waiting.wakeOwn(accountId, lanes);
    } catch (error) {
      this.#logFailure(error, { accountId });
      return false;
    }
  }

  #logFailure(error: unknown, facts: object): void {
    this.#log.warn(
      { ...facts, err: error },
      'waking a delayed webhook failed; it is retried after its delay',
    );
  }
}

/**
 * Returns the lanes in which deliveries of the account may wait for an attempt of the account to end. After a
 * response that includes deliveries that joined another lane when less was known about their receiver. Those of an
 * account that still has a hanging receiver are left to their turn.
 */
function lanesToWake(
  { lane, hasHangingReceiver }: ReceiverStanding,
  outcome: ReceiverOutcome | null,
): DeliveryLane[] {
  if (outcome !== 'prompt' && outcome !== 'late') return ['prompt'];
  const isRecovered = lane === 'hanging' || !hasHangingReceiver;
  return isRecovered ? ['prompt', 'unknown', 'hanging'] : ['prompt', 'unknown'];
}
