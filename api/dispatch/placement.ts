import type { TicketedPush } from '../../shared/redis/ticketed-list.ts';

/** A request that is pushed to the ready queue in the step that admits it. Ends with either `confirm` or `withdraw`. */
export interface Placement {
  readonly push: TicketedPush;
  /** Called when the item has been pushed. @param ticket its ticket in the queue */
  confirm(ticket: number): void;
  /** @param mayBePushed whether the item may have been pushed nevertheless, because Redis did not reply */
  withdraw(mayBePushed: boolean): void;
}
