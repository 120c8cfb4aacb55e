import { lookUp } from '../json-value.ts';
import type { FinishReason } from '../upstream.ts';

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  STOP: 'stop',
  MAX_TOKENS: 'length',
  // The vendor's limit for one call, which can be continued. For our callers, it is a length limit as well.
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
 * Maps a candidate's finish reason to OpenAI's. Returns null if the response is not valid: the model reported a failure
 * (`MALFORMED_FUNCTION_CALL`, `UNEXPECTED_TOOL_CALL`, `OTHER`, `NO_IMAGE`), or the reason is unknown.
 */
export function toFinishReason(native: string): FinishReason | null {
  return lookUp(FINISH_REASONS, native) ?? null;
}
