import { lookUp } from '../json-value.ts';
import type { FinishReason } from '../upstream.ts';

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  // The vendor's bound of one call, which can be gone on from: to our callers it is a bound as well.
  CONTINUATION: 'length',
  SAFETY: 'content_filter',
  RECITATION: 'content_filter',
  BLOCKLIST: 'content_filter',
  PROHIBITED_CONTENT: 'content_filter',
  SPII: 'content_filter',
  MODEL_ARMOR: 'content_filter',
  IMAGE_SAFETY: 'content_filter',
  IMAGE_PROHIBITED_CONTENT: 'content_filter',
  IMAGE_RECITATION: 'content_filter',
};

/**
 * A candidate's end in OpenAI's words. Null is an end that is none of the answer's: the model failed, by its own word
 * (`MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`, `OTHER`, `NO_IMAGE`) or by one that is not known here.
 */
export function toFinishReason(native: string): FinishReason | null {
  return lookUp(FINISH_REASONS, native) ?? null;
}
