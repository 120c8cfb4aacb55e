import type { UpstreamLogger } from './upstream.ts';

const dayMs = 24 * 60 * 60 * 1_000;

/** Reports the words for the end of a choice that have no known meaning: one warning per upstream and day. */
export class UnknownFinishWords {
  #silentUntilMs = -Infinity;

  note(word: string, log: Pick<UpstreamLogger, 'warn'>, nowMs = performance.now()): void {
    if (nowMs < this.#silentUntilMs) return;
    this.#silentUntilMs = nowMs + dayMs;
    log.warn(
      { finishReason: word },
      'the upstream ended an answer with an unknown finish reason; the caller got the answer, with "length"',
    );
  }
}
