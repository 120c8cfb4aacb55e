import type { UpstreamUsage } from './upstream.ts';

/**
 * What one call for images reported, without counts of nothing: a prompt was read, and a picture drawn where there is one.
 * Null where no count is left.
 */
export function dropEmptyCounts(usage: UpstreamUsage, images: number): UpstreamUsage | null {
  const promptTokens = usage.promptTokens === 0 ? null : usage.promptTokens;
  const completionTokens = usage.completionTokens === 0 && images > 0 ? null : usage.completionTokens;
  // A completion of nothing, of a prompt that was not counted, is no report either.
  if (promptTokens === null && (completionTokens ?? 0) === 0) return null;
  return { ...usage, promptTokens, completionTokens };
}
