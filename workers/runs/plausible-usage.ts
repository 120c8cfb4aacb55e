import type { UsageBounds } from '../../shared/catalog/usage-bounds.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { UpstreamUsage } from '../upstreams/upstream.ts';

/** Removes counts that are higher than the request can have caused. Returns the same object if there are none. */
export function removeImplausible(usage: UpstreamUsage, bounds: UsageBounds): UpstreamUsage {
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
      imageTokens: 0,
    }),
    ...(isCompletionOver && { completionTokens: null, reasoningTokens: null }),
  };
}

/** Logs at error level, because the operator bears the difference between the vendor's bill and our count. */
export function logImplausible(
  log: Logger,
  target: { readonly model: string; readonly route?: string | undefined },
  reported: Partial<UpstreamUsage>,
  bounds: UsageBounds,
): void {
  const { promptTokens, completionTokens } = reported;
  log.error(
    { ...target, reported: { promptTokens, completionTokens }, most: bounds },
    'implausible usage reported; own count used',
  );
}

/**
 * Logs a report above the reservation. The caller is charged up to twice the reservation; an operator can raise the
 * reservation.
 */
export function logOverrun(
  ...[log, target, { completionTokens }, bounds]: Parameters<typeof logImplausible>
): void {
  const fields = { ...target, reported: completionTokens, most: bounds.completionTokens };
  log.warn(fields, 'the vendor exceeded max_tokens');
}
