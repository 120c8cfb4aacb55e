/** Whether a unit of a text is the first half of a surrogate pair. */
export const isFirstHalf = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
const isSecondHalf = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** Whether surrogates come in pairs in a text that comes in parts: the halves of a pair may be in two of them. */
export class SurrogateCheck {
  #isOpen = false;

  /** Whether the last part ended in the first half of a pair. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** @returns whether there is no half by itself so far; an open one is not known to be by itself yet */
  take(part: string): boolean {
    const from = this.#isOpen ? 1 : 0;
    if (this.#isOpen && !isSecondHalf(part.charCodeAt(0))) return false;
    this.#isOpen = isFirstHalf(part.charCodeAt(part.length - 1));
    return part.slice(from, this.#isOpen ? -1 : undefined).isWellFormed();
  }
}

/** Whether all texts and keys of plain data are made of whole characters. */
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
