/**
 * Which inputs of a task are in the same line. Lines are counted from 0 in the order of their inputs, whatever their
 * numbers are.
 */
export class TaskLines {
  /** The line of each input; null if all are in one. */
  readonly #lines: Int32Array | null;
  /** The first input of each line, and the number of inputs. */
  readonly #starts: Int32Array;

  /** @param numbers of the inputs' lines, non-decreasing; undefined if all inputs are in one line */
  constructor(numbers: readonly number[] | undefined, inputs: number) {
    if (numbers === undefined) {
      this.#lines = null;
      this.#starts = Int32Array.of(0, inputs);
      return;
    }
    this.#lines = new Int32Array(inputs);
    const starts = new Int32Array(inputs + 1);
    let count = 0;
    for (let i = 0; i < inputs; i++) {
      if (i === 0 || numbers[i] !== numbers[i - 1]) starts[count++] = i;
      this.#lines[i] = count - 1;
    }
    starts[count] = inputs;
    this.#starts = starts.subarray(0, count + 1);
  }

  get count(): number {
    return this.#starts.length - 1;
  }

  /** Returns the line of an input. */
  indexOf(input: number): number {
    return this.#lines?.[input] ?? 0;
  }

  /** Returns the inputs of a line, the end excluded. */
  rangeOf(line: number): { readonly start: number; readonly end: number } {
    return { start: this.#starts[line]!, end: this.#starts[line + 1]! };
  }

  /** Returns the number of inputs of each line. */
  countInputs(): Int32Array {
    const counts = new Int32Array(this.count);
    for (let line = 0; line < counts.length; line++)
      counts[line] = this.#starts[line + 1]! - this.#starts[line]!;
    return counts;
  }
}
