/** The encoder reads this many of its own tokens of each input and no more. */
export const MAX_ENCODER_TOKENS = 128;

/**
 * The vocabulary's longest entry has 16 characters, so 2 048 fill the encoder unless they are white space or unknown
 * to it; twice that leaves room for both.
 */
const HEAD_CHARS = 4096;
/** The encoder's tokenizer is quadratic in what it is given at once. */
const MAX_WORD_CHARS = 200;

/** The part of an input that can matter, so that a megabyte is neither copied to a thread nor looked at there. */
export function cutHead(text: string): string {
  // A head shared with the whole text would keep all of it in memory, but only as long as the call takes.
  return text.trimStart().slice(0, HEAD_CHARS);
}

/** Of English; more of what is not. */
const CHARS_PER_TOKEN = 4;

/** About how many tokens the encoder reads of such a head: to know it costs more than it is worth on the main thread. */
export function estimateTokens(head: string): number {
  return Math.min(MAX_ENCODER_TOKENS, Math.max(1, Math.ceil(head.length / CHARS_PER_TOKEN)));
}

/**
 * The encoder's tokens of a text, at most MAX_ENCODER_TOKENS and at least one. Entries of its vocabulary never span
 * words, so a word at a time gives the same tokens as all at once, and the work ends where the room does.
 */
export function tokenizeInput(text: string, tokenizeWord: (word: string) => readonly number[]): number[] {
  const tokens: number[] = [];
  // As SentencePiece did in training: compatible characters are one, white space of any kind and length is a space.
  for (const word of cutHead(text).normalize('NFKC').split(/\s+/u)) {
    for (let start = 0; start < word.length; start += MAX_WORD_CHARS) {
      if (tokens.length >= MAX_ENCODER_TOKENS) return tokens.slice(0, MAX_ENCODER_TOKENS);
      for (const token of tokenizeWord(word.slice(start, start + MAX_WORD_CHARS))) tokens.push(token);
    }
  }
  if (tokens.length > MAX_ENCODER_TOKENS) tokens.length = MAX_ENCODER_TOKENS;
  // An input without a token would be missing from the model's output, not empty there.
  return tokens.length > 0 ? tokens : tokenizeWord(' ').slice(0, 1);
}
