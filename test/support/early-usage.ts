import type { ChatEvent } from '../../workers/upstreams/upstream.ts';

/** A vendor's output without the usage reports before its end, which are tested separately. */
export function dropEarlyUsage<T extends ChatEvent | Error>(outcome: readonly T[]): T[] {
  const end = outcome.findLastIndex((one) => !(one instanceof Error) && one.type === 'finish');
  return outcome.filter((one, i) => one instanceof Error || one.type !== 'usage' || (end !== -1 && i > end));
}
