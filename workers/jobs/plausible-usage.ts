import type { UsageBounds } from '../../shared/pricing/usage-bounds.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { UpstreamUsage } from '../upstreams/upstream.ts';

/** A report without the counts that are beyond what the request can have: the same object where none is. */
export function leaveOutImplausible(usage: UpstreamUsage, bounds: UsageBounds): UpstreamUsage {
  const isPromptOver = (usage.promptTokens ?? 0) > bounds.promptTokens;
  const isCompletionOver = (usage.completionTokens ?? 0) > bounds.completionTokens;
  if (!isPromptOver && !isCompletionOver) return usage;
  return {
    ...usage,
    ...(isPromptOver && {
      promptTokens: null,
      cachedTokens: null,
      cacheWriteTokens: null,
      webSearchTokens: null,
    }),
    ...(isCompletionOver && { completionTokens: null, reasoningTokens: null }),
  };
}

/** An operator must hear of it: what the vendor bills beyond our count is the operator's. */
export function logImplausible(
  log: Logger,
  where: { readonly model: string; readonly route?: string | undefined },
  reported: Partial<UpstreamUsage>,
  most: UsageBounds,
): void {
  const { promptTokens, completionTokens } = reported;
  log.error(
    { ...where, reported: { promptTokens, completionTokens }, most },
    'implausible usage reported; own count used',
  );
}

/** The report is charged, but for what is beyond twice the reservation: an operator can have more reserved. */
export function logOverrun(
  ...[log, where, { completionTokens }, most]: Parameters<typeof logImplausible>
): void {
  const fields = { ...where, reported: completionTokens, most: most.completionTokens };
  log.warn(fields, 'vendor overran max_tokens');
}
