import { truncateInput, estimateTokens } from './encoder-input.ts';

/**
 * Tokens per batch, with all inputs padded to the longest one: as much work as one input of full length, about 50 ms.
 * Larger batches would gain at most five percent, and the next call waits for the whole batch.
 */
const BATCH_TOKENS = 128;
/** Padding takes half as long as tokens. With more padding than this, two batches are faster than one. */
const PADDING_TOKENS = 16;

/** A call that waits for vectors. */
export interface EncoderCall {
  readonly isOver: boolean;
}

/** A text to encode, and the position of its vector in the call's result. */
export interface EncoderInput<C extends EncoderCall> {
  readonly call: C;
  readonly text: string;
  readonly place: number;
  /** Approximate. */
  readonly tokens: number;
}

interface WaitingCall<C extends EncoderCall> {
  readonly call: C;
  /** Sorted, shortest last. */
  readonly inputs: EncoderInput<C>[];
  /** Total of these inputs. */
  tokens: number;
}

/**
 * Queue of inputs for the encoder. A batch is formed at the moment it can start, from inputs of similar length of all
 * waiting calls. Batches alternate between the call with the least remaining work and the call that arrived first. So a
 * short call hardly waits for long ones, and a long call makes progress even if short ones keep arriving.
 */
export class EncoderQueue<C extends EncoderCall> {
  /** In order of arrival. */
  #waiting: WaitingCall<C>[] = [];
  /** Whether the latest batch began with the call with the least remaining work. */
  #startsWithShortest = false;

  /** The approximate number of waiting batches. */
  get batches(): number {
    return Math.ceil(this.#waiting.reduce((sum, { tokens }) => sum + tokens, 0) / BATCH_TOKENS);
  }

  add(call: C, texts: readonly string[]): void {
    const inputs = texts.map((whole, place) => {
      const text = truncateInput(whole);
      return { call, text, place, tokens: estimateTokens(text) };
    });
    inputs.sort((a, b) => b.tokens - a.tokens);
    this.#waiting.push({ call, inputs, tokens: inputs.reduce((sum, { tokens }) => sum + tokens, 0) });
  }

  /** Takes the inputs of the next batch; empty if nothing waits. */
  take(): EncoderInput<C>[] {
    this.#waiting = this.#waiting.filter(({ call }) => !call.isOver);
    const batch = new Batch<C>();
    const first = this.#chooseFirst();
    if (first === undefined) return batch.inputs;
    batch.takeFrom(first);
    // Other calls fill the remaining capacity.
    for (const other of this.#waiting) batch.takeFrom(other);
    this.#waiting = this.#waiting.filter(({ inputs }) => inputs.length > 0);
    return batch.inputs;
  }

  /** Removes and returns all waiting calls. */
  drain(): C[] {
    const calls = this.#waiting.map(({ call }) => call);
    this.#waiting = [];
    return calls;
  }

  #chooseFirst(): WaitingCall<C> | undefined {
    this.#startsWithShortest = !this.#startsWithShortest;
    return this.#startsWithShortest ? findShortest(this.#waiting) : this.#waiting[0];
  }
}

function findShortest<C extends EncoderCall>(calls: readonly WaitingCall<C>[]): WaitingCall<C> | undefined {
  let shortest = calls[0];
  for (const call of calls) if (call.tokens < shortest!.tokens) shortest = call;
  return shortest;
}

class Batch<C extends EncoderCall> {
  readonly inputs: EncoderInput<C>[] = [];
  #longest = 0;
  #tokens = 0;

  takeFrom(from: WaitingCall<C>): void {
    const { inputs } = from;
    for (let next = inputs.at(-1); next !== undefined && this.#fits(next); next = inputs.at(-1)) {
      inputs.pop();
      from.tokens -= next.tokens;
      this.inputs.push(next);
      this.#longest = Math.max(this.#longest, next.tokens);
      this.#tokens += next.tokens;
    }
  }

  #fits({ tokens }: EncoderInput<C>): boolean {
    const filled = Math.max(this.#longest, tokens) * (this.inputs.length + 1);
    return (
      this.inputs.length === 0 || (filled <= BATCH_TOKENS && filled - this.#tokens - tokens <= PADDING_TOKENS)
    );
  }
}
