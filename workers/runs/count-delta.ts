import type { CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { countTokens, defaultEncoding, type EncodingName } from '../../shared/pricing/count-tokens.ts';
import { tokensPerOutputImage } from '../../shared/catalog/usage-bounds.ts';

/**
 * Only this many characters are tokenized, to limit the time on the event loop. The remainder of a longer text is
 * assumed to have the same ratio of tokens to characters.
 */
const maxTokenizedCharacters = 8_192;
/** A longer word is not text but media as base64. */
const maxWordLength = 1_000;

type Delta = Readonly<Record<string, unknown>>;

/**
 * Counts the tokens of everything in one delta, in fields of any name: text, reasoning, tool names and arguments. Adds
 * a fixed number of tokens per image and none for audio, because only the vendor can report the tokens of audio.
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
      tokens += countText(typeof value === 'string' ? value : JSON.stringify(value, removeMedia), encoding);
    }
  }
  return tokens;
}

/**
 * Whether a delta may contain the model's full reasoning instead of a summary. OpenAI-compatible servers usually send
 * the full reasoning, in one of two fields; Anthropic and Gemini send summaries.
 */
export function isFullReasoning(
  { reasoning_content: reasoningContent, reasoning }: Delta,
  route: CatalogRoute | null,
): boolean {
  return Boolean(reasoningContent || reasoning) && route?.upstream.kind === 'openai';
}

/** Whether a delta contains any model output besides the opening role. */
export function isOutput(delta: Delta): boolean {
  return Object.entries(delta).some(([key, value]) => key !== 'role' && value !== null && value !== '');
}

function countText(text: string, encoding: EncodingName): number {
  if (text.length <= maxTokenizedCharacters) return countTokens(text, encoding);
  return Math.ceil(
    (countTokens(text.slice(0, maxTokenizedCharacters), encoding) * text.length) / maxTokenizedCharacters,
  );
}

function removeMedia(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length < maxWordLength) return value;
  return /\s/.test(value.slice(0, maxWordLength)) ? value : undefined;
}
