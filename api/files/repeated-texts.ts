import type { RepeatedText } from './file-content.ts';

/** Groups texts by how often they are read, so that the tokens of each group are counted only once. */
export class RepeatedTexts {
  readonly #pieces = new Map<number, string[]>();
  #characters = 0;

  /** Characters of all texts, multiplied by how often they are read. */
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

  /** @param factor multiplies all counts, for texts that are read together several times */
  list(factor: number): RepeatedText[] {
    return Array.from(this.#pieces, ([times, pieces]) => ({
      text: pieces.join(' '),
      times: times * factor,
    }));
  }
}
