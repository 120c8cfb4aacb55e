import { cutHead, estimateTokens } from './encoder-input.ts';

/**
 * Numbers in a batch, filled up to its longest input as it is: as much work as one input of full length, about 50 ms. More
 * at once gains a twentieth at most, and whoever comes next waits for all of it.
 */
const BATCH_TOKENS = 128;
/** Filling up costs half of what tokens cost: with more than this of it, two batches are quicker than one. */
const PADDING_TOKENS = 16;

/** Who waits for vectors. */
export interface EncoderCall {
  readonly isOver: boolean;
}

/** A text on its way to the encoder, and where its vector goes in the call's answer. */
export interface EncoderInput<C extends EncoderCall> {
  readonly call: C;
  readonly text: string;
  readonly place: number;
  /** About so many. */
  readonly tokens: number;
}

interface WaitingCall<C extends EncoderCall> {
  readonly call: C;
  /** The shortest last. */
  readonly inputs: EncoderInput<C>[];
}

/**
 * What waits for the encoder. A batch is made in the moment in which it can be begun, of inputs of similar length and of
 * all calls that have some; calls take turns at being the one whose inputs it is made for, so that none waits for all of
 * another.
 */
export class EncoderLine<C extends EncoderCall> {
  #waiting: WaitingCall<C>[] = [];
  #tokens = 0;

  /** About so many batches are waiting. */
  get batches(): number {
    return Math.ceil(this.#tokens / BATCH_TOKENS);
  }

  add(call: C, texts: readonly string[]): void {
    const inputs = texts.map((whole, place) => {
      const text = cutHead(whole);
      return { call, text, place, tokens: estimateTokens(text) };
    });
    inputs.sort((a, b) => b.tokens - a.tokens);
    this.#tokens += countTokens(inputs);
    this.#waiting.push({ call, inputs });
  }

  /** What should be done together next; empty where nothing waits. */
  take(): EncoderInput<C>[] {
    this.#dropOver();
    const batch = new Batch<C>();
    const first = this.#waiting.shift();
    if (first === undefined) return batch.inputs;
    this.#waiting.push(first);
    batch.takeFrom(first);
    // The others are asked in the order of their turns, and keep it.
    for (const other of this.#waiting) batch.takeFrom(other);
    this.#waiting = this.#waiting.filter(({ inputs }) => inputs.length > 0);
    this.#tokens -= countTokens(batch.inputs);
    return batch.inputs;
  }

  /** All calls of which anything waits. */
  drain(): C[] {
    const calls = this.#waiting.map(({ call }) => call);
    this.#waiting = [];
    this.#tokens = 0;
    return calls;
  }

  /** A call that left takes its inputs with it. */
  #dropOver(): void {
    this.#waiting = this.#waiting.filter(({ call, inputs }) => {
      if (call.isOver) this.#tokens -= countTokens(inputs);
      return !call.isOver;
    });
  }
}

class Batch<C extends EncoderCall> {
  readonly inputs: EncoderInput<C>[] = [];
  #longest = 0;
  #tokens = 0;

  takeFrom({ inputs }: WaitingCall<C>): void {
    for (let next = inputs.at(-1); next !== undefined && this.#hasRoomFor(next); next = inputs.at(-1)) {
      inputs.pop();
      this.inputs.push(next);
      this.#longest = Math.max(this.#longest, next.tokens);
      this.#tokens += next.tokens;
    }
  }

  #hasRoomFor({ tokens }: EncoderInput<C>): boolean {
    const filled = Math.max(this.#longest, tokens) * (this.inputs.length + 1);
    return (
      this.inputs.length === 0 || (filled <= BATCH_TOKENS && filled - this.#tokens - tokens <= PADDING_TOKENS)
    );
  }
}

function countTokens(inputs: readonly { readonly tokens: number }[]): number {
  return inputs.reduce((sum, { tokens }) => sum + tokens, 0);
}
