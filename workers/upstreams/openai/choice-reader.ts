import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';
import { readFinishWord } from '../finish-reasons.ts';
import { readText } from '../json-value.ts';
import { UpstreamError, type ChatEvent, type FinishReason } from '../upstream.ts';
import { toEmbeddedError } from './from-error.ts';
import { readLogprobs, readOutput } from './read-output.ts';
import { createToolCallNormalizer } from './tool-calls.ts';
import { readCitations } from './url-citations.ts';

export interface ChoiceOptions {
  readonly apiKey: string | null;
  /** How many choices the caller asked for; 1 if omitted. Others are left out. */
  readonly choices?: number;
  /** Whether the caller required one named function: OpenAI then ends with `stop`. */
  readonly isFunctionForced?: boolean;
  /** Called with a word for the end of a choice that has no known meaning. */
  readonly onUnknownFinish?: (word: string) => void;
}

interface Choice {
  /** In our response. */
  readonly index: number;
  /** The vendor's word for its end; null if it has not ended. */
  native: string | null;
}

const maxWordLength = 100;

/**
 * Reads the choices of a response, whole or in chunks, of any server with OpenAI's API. Reports the end of a choice only
 * when asked to: after a chunk with a finish reason, some servers send more text or another tool call.
 */
export class ChoiceReader {
  readonly #options: ChoiceOptions;
  readonly #toolCalls = createToolCallNormalizer();
  readonly #choices = new Map<number, Choice>();
  /** If one choice was requested: the index of the first one that arrived. */
  #only: number | null = null;

  constructor(options: ChoiceOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#choices.size;
  }

  /** Whether each choice so far has a finish reason. */
  get isEachFinished(): boolean {
    for (const { native } of this.#choices.values()) if (native === null) return false;
    return true;
  }

  /**
   * @param vendorIndex if one choice was requested, the first that arrives is it: some servers count from 1
   * @param message the choice's `message` or `delta`
   * @throws UpstreamError if the choice contains an error, or ended in a failure
   */
  take(choice: JsonRecord, vendorIndex: number, message: JsonRecord, events: ChatEvent[]): void {
    const known = this.open(vendorIndex);
    if (known === null) return;
    const { index } = known;
    const delta = readOutput(index, message, this.#toolCalls);
    const logprobs = readLogprobs(choice['logprobs']);
    if (logprobs !== null) events.push({ type: 'delta', index, delta, logprobs });
    else if (Object.keys(delta).length > 0) events.push({ type: 'delta', index, delta });
    events.push(...readCitations(index, message));
    if (isRecord(choice['error'])) throw toEmbeddedError(choice, this.#options.apiKey);
    const word = readWord(choice['finish_reason']);
    if (word === null) return;
    if (readFinishWord(word) === 'failure') {
      throw new UpstreamError('unavailable', `the upstream ended its response with "${word}"`, {
        vendorCode: word,
      });
    }
    known.native = word;
  }

  /** Records that the choice has output. Returns null if nobody requested it. */
  open(vendorIndex: number): Choice | null {
    const index = this.#findIndex(vendorIndex);
    if (index === null) return null;
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = { index, native: null };
      this.#choices.set(index, choice);
    }
    return choice;
  }

  /** Returns the index of a choice in our response; null if nobody requested it. */
  #findIndex(vendorIndex: number): number | null {
    const requested = this.#options.choices ?? 1;
    if (requested > 1) return vendorIndex < requested ? vendorIndex : null;
    this.#only ??= vendorIndex;
    return vendorIndex === this.#only ? 0 : null;
  }

  /** Returns the end of each choice, in the order in which they began. */
  finish(): ChatEvent[] {
    return Array.from(this.#choices, ([index, { native }]) => ({
      type: 'finish',
      index,
      finishReason: this.#findReason(index, native),
      nativeFinishReason: native,
    }));
  }

  #findReason(index: number, native: string | null): FinishReason {
    const meaning = native === null ? 'stop' : readFinishWord(native);
    if (meaning === null) {
      this.#options.onUnknownFinish?.(native!);
      return 'length';
    }
    const isCall =
      meaning === 'stop' && this.#toolCalls.hasCalls(index) && this.#options.isFunctionForced !== true;
    // A failure was thrown when it arrived.
    return isCall ? 'tool_calls' : (meaning as FinishReason);
  }
}

/** Some servers send the text `null` with each chunk. */
function readWord(value: unknown): string | null {
  const word = readText(value);
  return word === null || word === 'null' ? null : shorten(word, maxWordLength);
}
