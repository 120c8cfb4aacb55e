import { shorten } from '../../../shared/runtime/shorten.ts';
import { isRecord, type JsonRecord, readArray, readCount, readText } from '../json-value.ts';
import { type ChatEvent, UpstreamError } from '../upstream.ts';
import { toFinishReason } from './finish-reason.ts';
import { isErrorBody, toErrorWithin } from './from-error.ts';
import { createCandidate, type Candidate, type CandidateOptions } from './from-candidate.ts';
import { type GeminiCounts, isSameCounts, readCounts, toUsage } from './from-usage.ts';

export interface AnswerOptions extends CandidateOptions {
  readonly apiKey: string | null;
}

/** Turns an answer, whole or in chunks of the same form, into events. */
export interface AnswerTranslator {
  take(response: JsonRecord): ChatEvent[];
  /** The counts of the last response, where they changed: a stream that is cut afterwards is charged by them. */
  reportUsage(): ChatEvent[];
  /** All candidates have said how they ended. */
  readonly isFinished: boolean;
  /** Nothing more comes: how each candidate ended, then the usage. Throws where one has not ended. */
  end(): ChatEvent[];
}

/**
 * The finish is told at the very end, for this wire has no end mark: until the body closes, a candidate that has said
 * how it ended may still be followed by words of it.
 */
export function createAnswerTranslator(options: AnswerOptions): AnswerTranslator {
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
      throw toErrorWithin(response, options.apiKey);
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

  /** A blocked prompt has no candidates, or takes those that had begun their end. */
  function finish(candidate: Candidate): ChatEvent {
    const native = candidate.native ?? blockReason;
    const reason = candidate.native === null ? 'content_filter' : toFinishReason(candidate.native);
    const finishReason = reason ?? 'stop';
    return {
      type: 'finish',
      index: candidate.index,
      finishReason: finishReason === 'stop' && candidate.hasCalls ? 'tool_calls' : finishReason,
      nativeFinishReason: native,
    };
  }

  return {
    take,

    reportUsage() {
      if (counts === null || isSameCounts(counts, reported)) {
        return [];
      }
      reported = counts;
      const hasAnswered = [...candidates.values()].some((candidate) => candidate.hasAnswered);
      // Without either count it is not known yet what was generated, thoughts above all.
      const isPartial = counts.candidates === null && counts.thoughts === null;
      return [{ type: 'usage', usage: toUsage(counts, hasAnswered), ...(isPartial && { isPartial }) }];
    },

    get isFinished() {
      return isFinished();
    },

    end() {
      if (!isFinished()) {
        throw new UpstreamError('unavailable', 'the answer of the upstream ended without an end');
      }
      if (candidates.size === 0) {
        find(0);
      }
      const all = [...candidates.values()];
      const hasAnswer = all.some(({ hasAnswered }) => hasAnswered);
      const failed = all.find(({ native }) => native !== null && toFinishReason(native) === null);
      if (failed !== undefined && !hasAnswer && counts === null) {
        // Of an end that is no answer's end, before a word of an answer, another try is worth more than an empty text: but
        // where the vendor has counted it, it charges for each try, and an empty text that says why it is one costs once.
        throw new UpstreamError(
          'unavailable',
          `the model ended without an answer (${shorten(failed.native ?? '', 100)})`,
          { isOfRequest: true },
        );
      }
      return [
        ...all.flatMap((candidate) => [...candidate.open(), finish(candidate)]),
        ...(counts === null ? [] : [{ type: 'usage', usage: toUsage(counts, hasAnswer) } as const]),
      ];
    },
  };
}
