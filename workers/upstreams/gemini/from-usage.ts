import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readCount } from '../json-value.ts';
import { noUpstreamUsage, type UpstreamUsage } from '../upstream.ts';

/** The counts in `usageMetadata`. */
export interface GeminiCounts {
  readonly prompt: number | null;
  readonly cached: number | null;
  readonly candidates: number | null;
  readonly thoughts: number | null;
  readonly toolUse: number | null;
}

/** Reads the counts. Each chunk of a stream repeats the growing counts; the last value of each field is used. */
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

export function areCountsEqual(one: GeminiCounts, other: GeminiCounts | null): boolean {
  const names = Object.keys(one) as (keyof GeminiCounts)[];
  return other !== null && names.every((name) => one[name] === other[name]);
}

/**
 * Converts the counts to OpenAI's. Gemini counts thoughts separately from the response, and search results separately
 * from the prompt; OpenAI includes both. Cached tokens are part of the prompt in both.
 * @param hasOutput whether the model sent anything besides thoughts. If not, a missing count of the response means
 * zero; otherwise it is unknown.
 */
export function toUsage(counts: GeminiCounts, hasOutput: boolean): UpstreamUsage {
  const { prompt, cached, candidates, thoughts, toolUse } = counts;
  const candidateTokens = candidates ?? (hasOutput ? null : 0);
  return {
    ...noUpstreamUsage,
    promptTokens: prompt === null ? null : prompt + (toolUse ?? 0),
    completionTokens: candidateTokens === null ? null : candidateTokens + (thoughts ?? 0),
    cachedTokens: cached,
    reasoningTokens: thoughts,
    webSearchTokens: toolUse,
  };
}
