import { UpstreamError } from '../upstream.ts';

/**
 * How servers say that prompt and limit together exceed the context, with the context's length and the prompt's tokens
 * by their own count:
 * - OpenAI, DeepSeek, vLLM before 0.10: "This model's maximum context length is 8192 tokens. However, you requested 8300
 *   tokens (3100 in the messages, 5200 in the completion)."; OpenRouter: "(3100 of text input, 5200 in the output)"
 * - vLLM: "'max_tokens' or 'max_completion_tokens' is too large: 7000. This model's maximum context length is 8192 tokens
 *   and your request has 1500 input tokens (7000 > 8192 - 1500)."
 * - vLLM from 0.13: "… you requested 7000 output tokens and your prompt contains at least 1193 input tokens"
 * - vLLM from 0.30, of a prompt that it did not tokenize: "… your prompt contains 31800 characters (more than 256
 *   characters, which is the upper bound for 2 input tokens)"
 * - SGLang: "… maximum context length of 8192 tokens. You requested a total of 9000 tokens: 2000 tokens from the input
 *   messages and 7000 tokens for the completion."
 * - Text Generation Inference: "`inputs` tokens + `max_new_tokens` must be <= 8192. Given: 1500 `inputs` tokens and 7000
 *   `max_new_tokens`"
 */
const contextPatterns = [
  /maximum context length (?:is|of) (?<context>\d{1,9})\b/,
  /must be <= (?<context>\d{1,9})\b/,
];
const promptPatterns = [
  /\((?<prompt>\d{1,9}) (?:in the messages|of text input|in your prompt)\b/,
  /\b(?<prompt>\d{1,9}) (?:input tokens|prompt tokens|tokens from the input|`inputs` tokens)\b/,
];
/** The server stopped counting the prompt once it was too long. */
const isLowerBound = /\b(?:at least|upper bound for) \d{1,9} input tokens\b/;
/** DeepSeek: "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]" */
const rangePattern = /valid range of max_tokens is \[1, ?(?<maximum>\d{1,9})\]/;

/**
 * Returns the limit of completion tokens with which a server that has rejected a chat would accept it; null if the limit
 * is not the reason, or no lower one helps. Pure.
 * @param limit the limit that was sent
 */
export function findFittingLimit(error: unknown, limit: number): number | null {
  if (!(error instanceof UpstreamError) || error.failure !== 'rejected') return null;
  const maximum = readNumber(error.message, [rangePattern], 'maximum');
  if (maximum !== null) return maximum >= 1 && maximum < limit ? maximum : null;
  const context = readNumber(error.message, contextPatterns, 'context');
  const prompt = readNumber(error.message, promptPatterns, 'prompt');
  if (context === null || prompt === null) return null;
  const room = context - prompt;
  const fitting = isLowerBound.test(error.message) ? Math.min(room, Math.floor(limit / 2)) : room;
  return fitting >= 1 && fitting < limit ? fitting : null;
}

function readNumber(text: string, patterns: readonly RegExp[], name: string): number | null {
  for (const pattern of patterns) {
    const found = pattern.exec(text)?.groups?.[name];
    if (found !== undefined) return Number(found);
  }
  return null;
}
