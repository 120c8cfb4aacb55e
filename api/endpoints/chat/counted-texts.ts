import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { PromptPart } from './prompt-counter.ts';

const maxTexts = 50_000;
/** Shorter texts are tokenized faster than hashed. */
const minChars = 32;
/** Hashing this much takes a tenth of a millisecond. A longer text waits for an event-loop turn and is tokenized. */
const maxChars = 64 * 1024;

/** Determines, together with a text, how its tokens are counted. */
export interface CountedFor {
  readonly accountId: string;
  /** Names the vocabulary, and whether others are estimated too. */
  readonly vocabulary: string;
}

/**
 * The tokens of texts that were counted recently. A conversation repeats all of its messages with every turn, and an
 * application its system prompt with every request, so most text of a chat has been tokenized before.
 *
 * Only digests are kept, so no prompt stays in memory. Accounts do not share entries: otherwise, the time of a request
 * would reveal whether another account has sent the same text.
 */
export class CountedTexts {
  readonly #parts = new LRUCache<string, PromptPart>({ max: maxTexts });

  /** Returns the known tokens of the text, or those that `count` returns. A result of null is not kept. */
  async count(
    { accountId, vocabulary }: CountedFor,
    text: string,
    count: () => Promise<PromptPart | null>,
  ): Promise<PromptPart | null> {
    if (text.length < minChars || text.length > maxChars) return await count();
    const key = hash('sha256', `${accountId}\n${vocabulary}\n${text}`, 'base64');
    const known = this.#parts.get(key);
    if (known !== undefined) return known;
    const part = await count();
    if (part !== null) this.#parts.set(key, part);
    return part;
  }
}
