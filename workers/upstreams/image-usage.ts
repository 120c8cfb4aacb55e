import type { UpstreamUsage } from './upstream.ts';

/**
 * Removes implausible zero counts from the usage of one image call: the prompt had tokens, and so did the image, if
 * there is one. Returns null if no count is left.
 */
export function dropEmptyCounts(usage: UpstreamUsage, images: number): UpstreamUsage | null {
  const promptTokens = usage.promptTokens === 0 ? null : usage.promptTokens;
  const completionTokens = usage.completionTokens === 0 && images > 0 ? null : usage.completionTokens;
  // If the vendor reported no prompt tokens, a report of zero completion tokens is not usable either.
  if (promptTokens === null && (completionTokens ?? 0) === 0) return null;
  return { ...usage, promptTokens, completionTokens };
}
