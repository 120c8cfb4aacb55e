import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readCount } from '../json-value.ts';
import { noUpstreamUsage, type UpstreamUsage } from '../upstream.ts';

/** The usage of one call, with the counts that the API reports separately and we report as a sum. */
interface CallUsage {
  readonly input: number | null;
  readonly cacheRead: number | null;
  readonly cacheWrite: number | null;
  readonly output: number | null;
  readonly thinking: number | null;
}

export interface UsageMeter {
  /** Starts a call. The usage of earlier calls of the same response stays in the sum. */
  begin(): void;
  /**
   * Records a `usage` object of the call. Its counts replace earlier ones; an earlier count that it lacks stays valid.
   */
  take(usage: unknown): void;
  /** The sum of all calls; null if nothing was reported. */
  sum(): UpstreamUsage | null;
}

const noCounts: CallUsage = { input: null, cacheRead: null, cacheWrite: null, output: null, thinking: null };

/**
 * Adds up the usage of several calls. Counts in streams are cumulative, and old or third-party servers send only some
 * of them (`output_tokens` at the end). `input_tokens` excludes tokens read from or written to the cache;
 * `output_tokens` includes the thinking.
 */
export function createUsageMeter(): UsageMeter {
  let finished: UpstreamUsage | null = null;
  let call = noCounts;

  function sum(last: CallUsage): UpstreamUsage | null {
    const usage = toUsage(last);
    return finished === null || usage === null ? (usage ?? finished) : add(finished, usage);
  }

  return {
    begin() {
      finished = sum(call);
      call = noCounts;
    },

    take(usage) {
      if (!isRecord(usage)) return;
      const details = isRecord(usage['output_tokens_details']) ? usage['output_tokens_details'] : {};
      call = {
        input: readCount(usage['input_tokens']) ?? call.input,
        cacheRead: readCount(usage['cache_read_input_tokens']) ?? call.cacheRead,
        cacheWrite: readCount(usage['cache_creation_input_tokens']) ?? call.cacheWrite,
        output: readCount(usage['output_tokens']) ?? call.output,
        thinking: readCount(details['thinking_tokens']) ?? call.thinking,
      };
    },

    sum: () => sum(call),
  };
}

function toUsage({ input, cacheRead, cacheWrite, output, thinking }: CallUsage): UpstreamUsage | null {
  if (input === null && output === null) {
    return null;
  }
  return {
    ...noUpstreamUsage,
    promptTokens: input === null ? null : input + (cacheRead ?? 0) + (cacheWrite ?? 0),
    completionTokens: output,
    cachedTokens: cacheRead,
    cacheWriteTokens: cacheWrite,
    reasoningTokens: thinking,
  };
}

/**
 * Adds two reports. Partial counts that only some calls reported are summed over those, but a total is unknown if any
 * call did not report it.
 */
function add(one: UpstreamUsage, other: UpstreamUsage): UpstreamUsage {
  return {
    ...noUpstreamUsage,
    promptTokens: addTotals(one.promptTokens, other.promptTokens),
    completionTokens: addTotals(one.completionTokens, other.completionTokens),
    cachedTokens: addParts(one.cachedTokens, other.cachedTokens),
    cacheWriteTokens: addParts(one.cacheWriteTokens, other.cacheWriteTokens),
    reasoningTokens: addParts(one.reasoningTokens, other.reasoningTokens),
  };
}

function addTotals(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}

function addParts(one: number | null, other: number | null): number | null {
  return one === null ? other : one + (other ?? 0);
}
