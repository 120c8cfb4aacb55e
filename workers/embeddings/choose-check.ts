import { findTolerance, type CallBill } from './bill-call.ts';

/**
 * The account of a merged call whose next calls are to be its own, so that its inputs are counted alone; null for none. A
 * text that the vendor counts many times can hide in what it may count more for everybody else. So each call whose count
 * agrees, and is above ours, is a reason to look: the more of what is tolerated it takes, the likelier. One account a call is
 * looked at, of those that could not have had all of the excess by themselves unnoticed.
 * @param tokensOf own counts, by account
 * @param random in [0, 1)
 */
export function chooseCheck(
  tokensOf: ReadonlyMap<string, number>,
  { ownSum, excess }: Pick<CallBill, 'ownSum' | 'excess'>,
  random: () => number,
): string | null {
  if (tokensOf.size < 2 || excess === 0) return null;
  if (random() >= excess / findTolerance(ownSum, tokensOf.size)) return null;
  const suspects = [...tokensOf].filter(([, tokens]) => excess > findTolerance(tokens, 1));
  return suspects[Math.floor(random() * suspects.length)]?.[0] ?? null;
}
