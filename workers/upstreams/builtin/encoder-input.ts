/** The encoder reads only this many tokens per input, according to its own tokenizer. */
const MAX_ENCODER_TOKENS = 128;

/**
 * No vocabulary entry is longer than 16 characters, so 128 tokens cover at most 2048 characters of ordinary text. Twice
 * that allows for white space and for characters that are not in the vocabulary.
 */
const maxInputChars = 4096;
/** The encoder's tokenizer takes quadratic time in the length of its input. */
const MAX_WORD_CHARS = 200;

/**
 * Returns the part of an input that the encoder may read. A long text is then neither copied to a thread nor scanned
 * there.
 */
export function truncateInput(text: string): string {
  // The substring may keep the whole text in memory, but only until the call ends.
  return text.trimStart().slice(0, maxInputChars);
}

/** For English; other languages have more tokens per character. */
const CHARS_PER_TOKEN = 4;

/**
 * Estimates how many tokens of a truncated input the encoder reads. An exact count on the main thread costs more than
 * it is worth.
 */
export function estimateTokens(input: string): number {
  return Math.min(MAX_ENCODER_TOKENS, Math.max(1, Math.ceil(input.length / CHARS_PER_TOKEN)));
}

/**
 * Returns the encoder's tokens for a text, at most MAX_ENCODER_TOKENS and at least one. Vocabulary entries never span
 * words, so tokenizing word by word gives the same tokens as tokenizing the whole text, and can stop early.
 */
export function tokenizeInput(text: string, tokenizeWord: (word: string) => readonly number[]): number[] {
  const tokens: number[] = [];
  // Normalize as SentencePiece did in training: unify compatible characters, and treat any run of white space as one
  // space.
  for (const word of truncateInput(text).normalize('NFKC').split(/\s+/u)) {
    for (let start = 0; start < word.length; start += MAX_WORD_CHARS) {
      if (tokens.length >= MAX_ENCODER_TOKENS) return tokens.slice(0, MAX_ENCODER_TOKENS);
      for (const token of tokenizeWord(word.slice(start, start + MAX_WORD_CHARS))) tokens.push(token);
    }
  }
  if (tokens.length > MAX_ENCODER_TOKENS) tokens.length = MAX_ENCODER_TOKENS;
  // An input without tokens would be missing from the model's output, so return one token.
  return tokens.length > 0 ? tokens : tokenizeWord(' ').slice(0, 1);
}
