import type { CountingTurn } from '../../catalog/count-tokens.ts';

/**
 * Estimates how many tokens a text takes in a vocabulary other than ours. Not exact, but seldom much too low.
 * Vocabularies agree on prose. They differ where ours has long tokens that others lack: runs of one character (up to
 * 128 are one token), scripts that others split into bytes, and long words that are one token in ours.
 *
 * Takes one pass over the text, and loads no other vocabulary. The weight of each character is slightly above our own
 * average tokens per character for prose in its script. If other vocabularies have almost no tokens for its script, or
 * the character is repeated, its weight is what it takes in `cl100k_base`.
 */

/** Hundredths of a token. */
type Weight = number;

/** Small vocabularies have no tokens for these scripts and encode a character's three bytes as two tokens. */
const rareLetter: Weight = 200;
/** Neither letter nor digit and not ASCII: arrows, box drawing, spaces of other widths, each half of an emoji. */
const symbol: Weight = 100;
const latinLetter: Weight = 28;
const digit: Weight = 50;
const asciiSymbol: Weight = 30;
/** A single space takes no token: it is part of the token of the next word. */
const space: Weight = 0;

/** First and last character of a range, and the weight of every character in it. */
const scripts: readonly (readonly [number, number, Weight])[] = [
  [0x00c0, 0x02af, latinLetter],
  [0x1e00, 0x1eff, 100], // Latin of Vietnamese and Yoruba
  [0x0370, 0x03ff, 50], // Greek
  [0x1f00, 0x1fff, 100], // Ancient Greek
  [0x0400, 0x045f, 33], // Cyrillic
  [0x0460, 0x052f, 100], // Cyrillic of smaller languages
  [0x0590, 0x05ff, 50], // Hebrew
  [0x0600, 0x06ff, 46], // Arabic
  [0x0900, 0x097f, 48], // Devanagari
  [0x0e00, 0x0e7f, 100], // Thai
  [0x3040, 0x30ff, 80], // Kana
  [0x3400, 0x9fff, 90], // Han
  [0xac00, 0xd7a3, 80], // Hangul
];

/** The weight of each further character after this many repetitions in a row. */
const runs = { minLength: 4, weight: 100 };
/**
 * Runs of white space up to this length have a lower weight: they are mostly indentation, and all current vocabularies
 * have tokens for it.
 */
const spaceRuns = { maxLength: 16, weight: 25 };

/**
 * `encoder` is a model for embeddings with a small vocabulary of one language, such as BERT: it takes a token for each
 * letter of another one.
 */
export type ModelFamily = 'chat' | 'encoder';
const encoderLetter: Weight = 100;

const tables = new Map<ModelFamily, Uint8Array>();

/** By UTF-16 code unit. */
function getWeights(family: ModelFamily): Uint8Array {
  let table = tables.get(family);
  if (table !== undefined) return table;
  table = new Uint8Array(0x1_00_00);
  for (let code = 0; code < table.length; code += 1) table[code] = findWeight(String.fromCharCode(code));
  for (const [first, last, weight] of scripts) table.fill(weight, first, last + 1);
  if (family === 'encoder')
    for (let code = 0x80; code < table.length; code += 1)
      if (table[code] !== space) table[code] = Math.max(table[code]!, encoderLetter);
  tables.set(family, table);
  return table;
}

function findWeight(character: string): Weight {
  if (/[a-z]/i.test(character)) return latinLetter;
  if (/\d/.test(character)) return digit;
  if (character < '\u0080') return /\s/.test(character) ? space : asciiSymbol;
  return /[\p{L}\p{M}\p{N}]/u.test(character) ? rareLetter : symbol;
}

const charactersPerTurn = 64 * 1024;

/** Estimates the tokens of a text, in as many turns of the event loop as it takes. */
export async function estimateInOtherVocabulariesAsync(
  text: string,
  family: ModelFamily,
  turn: CountingTurn,
): Promise<number> {
  let tokens = 0;
  for (let start = 0; start < text.length; start += charactersPerTurn) {
    const end = Math.min(text.length, start + charactersPerTurn);
    tokens += estimateInOtherVocabularies(text, family, start, end);
    if (turn.spend(0)) await turn.next();
  }
  return tokens;
}

/** Estimates the tokens of a text, or of the part between `start` and `end`. */
export function estimateInOtherVocabularies(
  text: string,
  family: ModelFamily = 'chat',
  start = 0,
  end = text.length,
): number {
  const weights = getWeights(family);
  let sum = 0;
  let last = -1;
  let run = 0;
  for (let i = start; i < end; i += 1) {
    const code = text.charCodeAt(i);
    const weight = weights[code]!;
    // White space of any kind is one run, because our vocabulary has tokens for many mixtures of it.
    const kind = weight === space ? space : code;
    run = kind === last ? run + 1 : 1;
    last = kind;
    if (run <= runs.minLength) sum += weight;
    else if (kind === space && run <= spaceRuns.maxLength) sum += spaceRuns.weight;
    else sum += Math.max(weight, runs.weight);
  }
  return sum / 100;
}
