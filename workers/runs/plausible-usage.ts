import type { UsageBounds } from '../../shared/catalog/usage-bounds.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { UpstreamUsage } from '../upstreams/upstream.ts';

/** Removes counts that exceed what the request can have used. Returns the same object if there are none. */
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

/** Logs at error level, because the operator bears what the vendor bills beyond our count. */
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

/**
 * Logs a report above the reservation. It is charged up to twice the reservation; an operator can raise the
 * reservation.
 */
export function logOverrun(
  ...[log, where, { completionTokens }, most]: Parameters<typeof logImplausible>
): void {
  const fields = { ...where, reported: completionTokens, most: most.completionTokens };
  log.warn(fields, 'the vendor exceeded max_tokens');
}
