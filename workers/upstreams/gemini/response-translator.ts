import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readCount, readText } from '../json-value.ts';
import { readFinishWord } from '../finish-reasons.ts';
import { type ChatEvent, type FinishReason, UpstreamError } from '../upstream.ts';
import { isErrorBody, toEmbeddedError } from './from-error.ts';
import { createCandidate, type Candidate, type CandidateOptions } from './from-candidate.ts';
import { type GeminiCounts, areCountsEqual, readCounts, toUsage } from './from-usage.ts';

export interface ResponseOptions extends CandidateOptions {
  readonly apiKey: string | null;
  /** Called with a word for the end of a candidate that has no known meaning. */
  readonly onUnknownFinish?: (word: string) => void;
}

/** Translates a response, complete or in chunks of the same format, into events. */
export interface ResponseTranslator {
  take(response: JsonRecord): ChatEvent[];
  /**
   * Reports the counts of the last response if they have changed. If the stream is interrupted afterwards, the caller
   * is charged according to them.
   */
  reportUsage(): ChatEvent[];
  /** Whether all candidates have a finish reason. */
  readonly isFinished: boolean;
  /** Returns the finish event of each candidate, then the usage. Throws if a candidate has not finished. */
  end(): ChatEvent[];
}

/**
 * Creates the translator. It reports the finish at the very end, because this protocol has no end marker: until the
 * body ends, a candidate that has a finish reason may still receive more text.
 */
export function createResponseTranslator(options: ResponseOptions): ResponseTranslator {
  const candidates = new Map<number, Candidate>();
  let counts: GeminiCounts | null = null;
  let blockReason: string | null = null;
  let reported: GeminiCounts | null = null;

  function find(index: number): Candidate {
    const candidate = candidates.get(index) ?? createCandidate(index, options);
    candidates.set(index, candidate);
    return candidate;
  }

  function take(response: JsonRecord): ChatEvent[] {
    if (isErrorBody(response)) {
      throw toEmbeddedError(response, options.apiKey);
    }
    counts = readCounts(response, counts);
    const feedback = isRecord(response['promptFeedback']) ? response['promptFeedback'] : {};
    blockReason = readText(feedback['blockReason']) ?? blockReason;
    return readArray(response['candidates']).flatMap((candidate, position) =>
      isRecord(candidate) ? find(readCount(candidate['index']) ?? position).take(candidate) : [],
    );
  }

  function isFinished(): boolean {
    return (
      blockReason !== null ||
      (candidates.size > 0 && [...candidates.values()].every(({ native }) => native !== null))
    );
  }

  /**
   * Returns the finish event of a candidate. Only a blocked prompt leaves a candidate without a finish reason, so the
   * block reason is used instead.
   */
  function finish(candidate: Candidate): ChatEvent {
    const native = candidate.native ?? blockReason;
    const finishReason = candidate.native === null ? 'content_filter' : toFinishReason(candidate.native);
    return {
      type: 'finish',
      index: candidate.index,
      finishReason: finishReason === 'stop' && candidate.hasCalls ? 'tool_calls' : finishReason,
      nativeFinishReason: native,
    };
  }

  /** An unknown reason without any output is a failure as well. */
  function hasFailed({ native }: Candidate, hasAnyOutput: boolean): boolean {
    const meaning = native === null ? 'stop' : readFinishWord(native);
    return meaning === 'failure' || (meaning === null && !hasAnyOutput);
  }

  function toFinishReason(native: string): FinishReason {
    const meaning = readFinishWord(native);
    if (meaning === null) {
      options.onUnknownFinish?.(native);
      return 'length';
    }
    // Only for a response without output that the vendor bills. All other failures are thrown.
    return meaning === 'failure' ? 'stop' : meaning;
  }

  return {
    take,

    reportUsage() {
      if (counts === null || areCountsEqual(counts, reported)) {
        return [];
      }
      reported = counts;
      const hasOutput = [...candidates.values()].some((candidate) => candidate.hasOutput);
      // Without either count, the generated tokens, in particular the thoughts, are not known yet.
      const isPartial = counts.candidates === null && counts.thoughts === null;
      return [{ type: 'usage', usage: toUsage(counts, hasOutput), ...(isPartial && { isPartial }) }];
    },

    get isFinished() {
      return isFinished();
    },

    end() {
      if (!isFinished()) {
        throw new UpstreamError('unavailable', 'the upstream response ended before it was complete');
      }
      if (candidates.size === 0) {
        find(0);
      }
      const all = [...candidates.values()];
      const hasAnyOutput = all.some(({ hasOutput }) => hasOutput);
      const failedCandidate = all.find((candidate) => hasFailed(candidate, hasAnyOutput));
      if (
        failedCandidate !== undefined &&
        (failedCandidate.hasOutput || (!hasAnyOutput && counts === null))
      ) {
        // If the model failed before any output, a retry is better than an empty text. But if the vendor reported
        // tokens, it bills every attempt, so an empty text with the reason is returned, which is billed once.
        throw new UpstreamError(
          'unavailable',
          `the model ended its response with a failure (${shorten(failedCandidate.native ?? '', 100)})`,
          { isRequestFailure: true },
        );
      }
      return [
        ...all.flatMap((candidate) => [...candidate.open(), finish(candidate)]),
        ...(counts === null ? [] : [{ type: 'usage', usage: toUsage(counts, hasAnyOutput) } as const]),
      ];
    },
  };
}
