import { isFirstHalf } from '../platform/runtime/surrogate-check.ts';

/**
 * Text is tokenized in blocks. They end where the encoding splits the text anyway, so the sum of their tokens is exact.
 * A run of more than `blockBytes` without such a position (one character repeated a million times, a megabyte of spaces)
 * is split nevertheless, because merging is quadratic in the bytes of a run. The sum is then off by a token or two per
 * split. Pages use this, too: nothing here knows Node.
 */
const blockBytes = 2000;
/** A UTF-16 code unit takes at most this much UTF-8. */
const maxBytesPerChar = 3;

/** Returns where the block of text that begins at `start` ends. */
export function findBlockEnd(text: string, start: number): number {
  const furthest = findFurthestEnd(text, start);
  if (furthest === text.length) return furthest;
  for (let end = furthest; end > start; end--) {
    if (isSpaceAfterWord(text, end)) return end;
  }
  for (let end = furthest; end > start; end--) {
    if (isPunctuationAfterWord(text, end)) return end;
  }
  return isFirstHalf(text.charCodeAt(furthest - 1)) ? furthest - 1 : furthest;
}

/** The end of the longest part that takes at most `blockBytes`. */
function findFurthestEnd(text: string, start: number): number {
  if ((text.length - start) * maxBytesPerChar <= blockBytes) return text.length;
  const maxEnd = Math.min(text.length, start + blockBytes);
  let end = start;
  for (let bytes = 0; end < maxEnd; end += 1) {
    const code = text.charCodeAt(end);
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : maxBytesPerChar;
    if (bytes > blockBytes) break;
  }
  return end;
}

/**
 * Whether a block may end before this space or tab because a word precedes it. The encoding never puts a space or tab
 * in one piece with a preceding word.
 */
function isSpaceAfterWord(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return (code === 0x20 || code === 0x09) && !isWhitespace(text.charCodeAt(index - 1));
}

const wordChar = /[\p{L}\p{N}]/u;
const wordContinuation = /[\p{L}\p{N}\p{M}\p{Cs}']/u;

/**
 * For scripts without spaces: a piece that ends in a letter or digit takes no punctuation after it, except an
 * apostrophe. Halves of a surrogate pair count as letters, so that no pair is split.
 */
function isPunctuationAfterWord(text: string, index: number): boolean {
  return !wordContinuation.test(text.charAt(index)) && wordChar.test(text.charAt(index - 1));
}

function isWhitespace(code: number): boolean {
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return /\s/u.test(String.fromCharCode(code));
}
