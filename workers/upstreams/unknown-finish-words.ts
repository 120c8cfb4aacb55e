import { createThrottledWarning } from '../../shared/platform/runtime/throttled-warning.ts';
import type { UpstreamLogger } from './upstream.ts';

const dayMs = 24 * 60 * 60 * 1_000;

/** Reports a word for the end of a choice that has no known meaning. */
export type WarnOfFinishWord = (word: string, log: Pick<UpstreamLogger, 'warn'>) => void;

/** Creates the report of one upstream: one warning a day. */
export function createFinishWordWarning(): WarnOfFinishWord {
  const warn = createThrottledWarning(
    (line, word: string, log: Pick<UpstreamLogger, 'warn'>) => log.warn({ finishReason: word }, line),
    { intervalMs: dayMs },
  );
  return (word, log) =>
    warn('unknown finish reason from upstream; reported to the caller as "length"', word, log);
}
