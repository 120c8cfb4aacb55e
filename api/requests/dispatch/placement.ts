import type { TicketedPush } from '../../../shared/platform/redis/ticketed-list.ts';

/** A request that is pushed to a queue in the step that admits it. Ends with one call of one of its functions. */
export interface Placement {
  readonly push: TicketedPush;
  /** Call when the item has been pushed. @param ticket its ticket in the queue */
  confirm(ticket: number): void;
  /** Call when the item has not been pushed. */
  withdraw(): void;
  /**
   * Call when Redis did not reply. Resolves to whether the item has been pushed nevertheless, which is known once a worker
   * has accepted the request. If no worker does within a second, the request is withdrawn, and a worker that accepts it
   * later is stopped.
   */
  confirmIfAccepted(): Promise<boolean>;
}
