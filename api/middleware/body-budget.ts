/** Smaller bodies are not worth counting. */
const countedFromBytes = 256 * 1024;

/** What large bodies hold of a process's memory together: read, parsed and counted, until they are answered. */
export class BodyBudget {
  readonly #bytes: number;
  #held = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  get heldBytes(): number {
    return this.#held;
  }

  /** Whether there is room for a body of this length now; what is only announced takes none. */
  fits(length: number): boolean {
    return length < countedFromBytes || this.#held + length <= this.#bytes;
  }

  /** Opens the account of one body. */
  open(): BodyShare {
    let own = 0;
    return {
      grow: (length) => {
        if (length < countedFromBytes || length <= own) return true;
        if (this.#held + length - own > this.#bytes) return false;
        this.#held += length - own;
        own = length;
        return true;
      },
      close: () => {
        this.#held -= own;
        own = 0;
      },
    };
  }
}

export interface BodyShare {
  /** Says how much of the body has come by now. @returns whether there is room for it */
  grow(length: number): boolean;
  close(): void;
}
