// decision 0066
/**
 * An item to append to a ticketed list in the same step as another change. The list is bounded. The ticket of an item is
 * how many items were ever pushed, including this one, so that its position in the list can be computed.
 */
export interface TicketedPush {
  /** The keys of the list and of the number of items ever pushed. */
  readonly keys: readonly [list: string, pushed: string];
  /** Maximum number of items. */
  readonly bound: number;
  readonly item: string;
}
