import type { ChatEvent } from '../../workers/upstreams/upstream.ts';

/** Drops the usage events that do not follow the last `finish` event. Separate tests cover them. */
export function dropEarlyUsage<T extends ChatEvent | Error>(outcome: readonly T[]): T[] {
  const end = outcome.findLastIndex((one) => !(one instanceof Error) && one.type === 'finish');
  return outcome.filter((one, i) => one instanceof Error || one.type !== 'usage' || (end !== -1 && i > end));
}
