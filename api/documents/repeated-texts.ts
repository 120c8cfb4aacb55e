import type { RepeatedText } from './file-content.ts';

/**
 * Groups texts by the number of times that they are read. Each group becomes one text, which is tokenized only once.
 */
export class RepeatedTexts {
  readonly #pieces = new Map<number, string[]>();
  #characters = 0;

  /** Number of characters of all texts, including repetitions. */
  get characters(): number {
    return this.#characters;
  }

  add(text: string, times: number): void {
    if (times <= 0 || text === '') return;
    this.#characters += text.length * times;
    const pieces = this.#pieces.get(times);
    if (pieces === undefined) this.#pieces.set(times, [text]);
    else pieces.push(text);
  }

  /** @param factor multiplies the number of times of each text */
  list(factor: number): RepeatedText[] {
    return Array.from(this.#pieces, ([times, pieces]) => ({
      text: pieces.join(' '),
      times: times * factor,
    }));
  }
}
