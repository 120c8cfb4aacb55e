import type { ChatEvent } from '../../workers/upstreams/upstream.ts';

/** What a vendor said, without the reports of its usage that came ahead of its end: those have tests of their own. */
export function leaveOutEarlyUsage<T extends ChatEvent | Error>(outcome: readonly T[]): T[] {
  const end = outcome.findLastIndex((one) => !(one instanceof Error) && one.type === 'finish');
  return outcome.filter((one, i) => one instanceof Error || one.type !== 'usage' || (end !== -1 && i > end));
}
