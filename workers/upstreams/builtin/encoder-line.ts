import { cutHead, estimateTokens } from './encoder-input.ts';

/**
 * Tokens of a batch whose inputs are all filled up to its longest one: as much work as one input of full length, about
 * 50 ms. More at once gains a twentieth at most, and whoever comes next waits for all of it.
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
  /** Of all these inputs. */
  tokens: number;
}

/**
 * What waits for the encoder. A batch is made in the moment in which it can be begun, of inputs of similar length from
 * all calls that have some. One batch is made for the call that has the least left, the next for the one that came first:
 * so a short call hardly waits for long ones, however many there are, and a long one goes on however many short ones
 * come.
 */
export class EncoderLine<C extends EncoderCall> {
  /** In the order in which they came. */
  #waiting: WaitingCall<C>[] = [];
  #wasForShortest = false;

  /** About so many batches are waiting. */
  get batches(): number {
    return Math.ceil(this.#waiting.reduce((sum, { tokens }) => sum + tokens, 0) / BATCH_TOKENS);
  }

  add(call: C, texts: readonly string[]): void {
    const inputs = texts.map((whole, place) => {
      const text = cutHead(whole);
      return { call, text, place, tokens: estimateTokens(text) };
    });
    inputs.sort((a, b) => b.tokens - a.tokens);
    this.#waiting.push({ call, inputs, tokens: inputs.reduce((sum, { tokens }) => sum + tokens, 0) });
  }

  /** What should be done together next; empty where nothing waits. */
  take(): EncoderInput<C>[] {
    this.#waiting = this.#waiting.filter(({ call }) => !call.isOver);
    const batch = new Batch<C>();
    const first = this.#chooseFirst();
    if (first === undefined) return batch.inputs;
    batch.takeFrom(first);
    // What room it leaves is the others'.
    for (const other of this.#waiting) batch.takeFrom(other);
    this.#waiting = this.#waiting.filter(({ inputs }) => inputs.length > 0);
    return batch.inputs;
  }

  /** All calls of which anything waits. */
  drain(): C[] {
    const calls = this.#waiting.map(({ call }) => call);
    this.#waiting = [];
    return calls;
  }

  #chooseFirst(): WaitingCall<C> | undefined {
    this.#wasForShortest = !this.#wasForShortest;
    return this.#wasForShortest ? findShortest(this.#waiting) : this.#waiting[0];
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
    for (let next = inputs.at(-1); next !== undefined && this.#hasRoomFor(next); next = inputs.at(-1)) {
      inputs.pop();
      from.tokens -= next.tokens;
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
