// decision 0029
import { hash } from 'node:crypto';
import { createRecentEntries } from '../../platform/runtime/recent-entries.ts';
import type { PromptPart } from './prompt-counter.ts';

const maxTexts = 50_000;
/** Shorter texts are tokenized faster than hashed. */
const minChars = 32;
/** Hashing this much takes a tenth of a millisecond. */
const maxChars = 64 * 1024;

/**
 * The tokens of texts that were counted recently. A conversation repeats all of its messages with every turn, and an
 * application its system prompt with every request, so most text of a chat has been tokenized before.
 *
 * Only digests are kept, so no prompt stays in memory. Accounts do not share entries: otherwise, the time of a request
 * would reveal whether another account has sent the same text.
 */
export class CountedTexts {
  readonly #parts = createRecentEntries<string, PromptPart>(maxTexts);

  /**
   * Returns the key of a text; null if its tokens are not kept.
   * @param vocabulary names how its tokens are counted
   */
  keyOf(accountId: string, vocabulary: string, text: string): string | null {
    if (text.length < minChars || text.length > maxChars) return null;
    return hash('sha256', `${accountId}\n${vocabulary}\n${text}`, 'base64');
  }

  find(key: string): PromptPart | null {
    return this.#parts.get(key) ?? null;
  }

  add(key: string, part: PromptPart): void {
    this.#parts.set(key, part);
  }
}

/**
 * Returns how many characters take as long to tokenize as it takes to look up a text of this length. Pure.
 */
export function countLookUpChars(length: number): number {
  return Math.min(length, minChars + Math.ceil(length / 8));
}
