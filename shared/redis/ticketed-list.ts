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

/** Lua: appends an item to a ticketed list, and returns its ticket; 0 if the list is full. */
export const pushFunction = `
local function push(list, pushed, bound, item)
  if redis.call('LLEN', list) >= tonumber(bound) then return 0 end
  redis.call('RPUSH', list, item)
  return redis.call('INCR', pushed)
end
`;
