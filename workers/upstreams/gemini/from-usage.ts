import { isRecord, type JsonRecord, readCount } from '../json-value.ts';
import { noUpstreamUsage, type UpstreamUsage } from '../upstream.ts';

/** Counts as `usageMetadata` has them. */
export interface GeminiCounts {
  readonly prompt: number | null;
  readonly cached: number | null;
  readonly candidates: number | null;
  readonly thoughts: number | null;
  readonly toolUse: number | null;
}

/** Each chunk of a stream repeats them, growing: the last word counts, field by field. */
export function readCounts(response: JsonRecord, known: GeminiCounts | null): GeminiCounts | null {
  const usage = response['usageMetadata'];
  if (!isRecord(usage)) {
    return known;
  }
  return {
    prompt: readCount(usage['promptTokenCount']) ?? known?.prompt ?? null,
    cached: readCount(usage['cachedContentTokenCount']) ?? known?.cached ?? null,
    candidates: readCount(usage['candidatesTokenCount']) ?? known?.candidates ?? null,
    thoughts: readCount(usage['thoughtsTokenCount']) ?? known?.thoughts ?? null,
    toolUse: readCount(usage['toolUsePromptTokenCount']) ?? known?.toolUse ?? null,
  };
}

export function isSameCounts(one: GeminiCounts, other: GeminiCounts | null): boolean {
  const names = Object.keys(one) as (keyof GeminiCounts)[];
  return other !== null && names.every((name) => one[name] === other[name]);
}

/**
 * Gemini counts thoughts beside the answer and a search's results beside the prompt; OpenAI counts both within. Cached
 * tokens are within the prompt in both.
 * @param hasAnswered whether the model said anything but thoughts. Where it did not, its count is left out for zero;
 * where it did, a count that is missing is unknown.
 */
export function toUsage(counts: GeminiCounts, hasAnswered: boolean): UpstreamUsage {
  const { prompt, cached, candidates, thoughts, toolUse } = counts;
  const answered = candidates ?? (hasAnswered ? null : 0);
  return {
    ...noUpstreamUsage,
    promptTokens: prompt === null ? null : prompt + (toolUse ?? 0),
    completionTokens: answered === null ? null : answered + (thoughts ?? 0),
    cachedTokens: cached,
    reasoningTokens: thoughts,
    webSearchTokens: toolUse,
  };
}
