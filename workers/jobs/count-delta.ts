import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { countTokens, defaultEncoding, type EncodingName } from '../../shared/pricing/count-tokens.ts';
import { tokensPerOutputImage } from '../../shared/pricing/usage-bounds.ts';

/** Counted in a turn of the worker's loop; the rest of a longer text is taken to have as many to the letter. */
const countedLetters = 8_192;
/** A word as long as this is no word: pictures and sound come as text like that. */
const longestWord = 1_000;

type Delta = Readonly<Record<string, unknown>>;

/**
 * Tokens of all that one delta adds: text, reasoning, tool names and arguments, whatever the fields are called. An image
 * counts a flat number. Sound counts nothing: what it costs only its vendor can report.
 */
export function countDelta(delta: Delta, encoding: EncodingName = defaultEncoding): number {
  let tokens = 0;
  for (const [key, value] of Object.entries(delta)) {
    if (key === 'role' || value === null || value === '') continue;
    if (key === 'tool_calls' && Array.isArray(value)) {
      for (const call of value as { function?: { name?: string; arguments?: string } }[]) {
        tokens += countText(`${call.function?.name ?? ''}${call.function?.arguments ?? ''}`, encoding);
      }
    } else if (key === 'images' && Array.isArray(value)) {
      tokens += value.length * tokensPerOutputImage;
    } else {
      tokens += countText(typeof value === 'string' ? value : JSON.stringify(value, leaveOutMedia), encoding);
    }
  }
  return tokens;
}

/**
 * Whether a delta may be reasoning itself, as servers of OpenAI's form mostly send it. Anthropic and Gemini send
 * summaries.
 */
export function isReasoningItself(
  { reasoning_content: reasoning, reasoning: newer }: Delta,
  route: CatalogRoute | null,
): boolean {
  return Boolean(reasoning || newer) && route?.upstream.kind === 'openai';
}

/** Whether a delta holds anything that a model said, beyond the role that opens its answer. */
export function isOutput(delta: Delta): boolean {
  return Object.entries(delta).some(([key, value]) => key !== 'role' && value !== null && value !== '');
}

function countText(text: string, encoding: EncodingName): number {
  if (text.length <= countedLetters) return countTokens(text, encoding);
  return Math.ceil((countTokens(text.slice(0, countedLetters), encoding) * text.length) / countedLetters);
}

function leaveOutMedia(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length < longestWord) return value;
  return /\s/.test(value.slice(0, longestWord)) ? value : undefined;
}
