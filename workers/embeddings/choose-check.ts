// decision 0027
import { findTolerance, type CallBill } from './bill-call.ts';

/**
 * Picks an account of a merged call to check: its next calls contain only its own inputs, so that the vendor reports
 * their tokens separately. Returns null if none is to be checked. If the vendor counts many times as many tokens in a
 * text as we do, the difference may go unnoticed, because it may be within the excess that is tolerated for all
 * accounts of a call. So every call whose count agrees with ours but is higher may lead to a check; the more of the
 * tolerance it uses, the more likely. At most one account per call is checked, and only an account for which the whole
 * excess would not be tolerated in a separate call.
 * @param tokensOf our own token counts, by account
 * @param random in [0, 1)
 */
export function chooseCheck(
  tokensOf: ReadonlyMap<string, number>,
  { countedSum, excess }: Pick<CallBill, 'countedSum' | 'excess'>,
  random: () => number,
): string | null {
  if (tokensOf.size < 2 || excess === 0) return null;
  if (random() >= excess / findTolerance(countedSum, tokensOf.size)) return null;
  const suspects = [...tokensOf].filter(([, tokens]) => excess > findTolerance(tokens, 1));
  return suspects[Math.floor(random() * suspects.length)]?.[0] ?? null;
}
