/** Returns whether a UTF-16 code unit is the first half of a surrogate pair. */
export const isFirstHalf = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
const isSecondHalf = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** Checks that surrogates are paired in a text that arrives in parts. A pair may be split between two parts. */
export class SurrogateCheck {
  #isOpen = false;

  /** Whether the last part ended with the first half of a pair. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** @returns false once there is a lone surrogate; a first half at the end of a part does not count as lone yet */
  take(part: string): boolean {
    const from = this.#isOpen ? 1 : 0;
    if (this.#isOpen && !isSecondHalf(part.charCodeAt(0))) return false;
    this.#isOpen = isFirstHalf(part.charCodeAt(part.length - 1));
    return part.slice(from, this.#isOpen ? -1 : undefined).isWellFormed();
  }
}

/** Returns whether all strings and keys of plain data are free of lone surrogates. */
export function isWellFormed(value: unknown): boolean {
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const current = pending.pop();
    if (typeof current === 'string') {
      if (!current.isWellFormed()) return false;
    } else if (Array.isArray(current)) {
      for (const item of current as unknown[]) pending.push(item);
    } else if (typeof current === 'object' && current !== null) {
      for (const key in current) {
        if (!key.isWellFormed()) return false;
        pending.push((current as Record<string, unknown>)[key]);
      }
    }
  }
  return true;
}
