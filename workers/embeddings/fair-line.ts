/** What waits in a line: whose it is, and what it takes of a call's limits. */
export interface FairItem {
  readonly accountId: string;
  readonly tokens: number;
}

export interface CallLimits {
  readonly maxInputs: number;
  readonly maxTokens: number;
}

/**
 * A line in which accounts take turns: however many items one of them has put in, the next call has room for the others'.
 * Items of one account keep their order.
 */
export class FairLine<T extends FairItem> {
  /** In the order of their turns: who was served goes to the end. */
  readonly #accounts = new Map<string, Queue<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(item: T): void {
    let queue = this.#accounts.get(item.accountId);
    if (queue === undefined) {
      queue = new Queue();
      this.#accounts.set(item.accountId, queue);
    }
    queue.push(item);
    this.#size += 1;
  }

  /**
   * What fits into one call, one item of each account in turn; an item too large for any call goes alone. Items that are
   * not wanted any more are dropped on the way.
   */
  take(limits: CallLimits, isWanted: (item: T) => boolean): T[] {
    const taken: T[] = [];
    let tokens = 0;
    let turn: [string, Queue<T>] | null = null;
    while (this.#size > 0) {
      turn ??= this.#accounts.entries().next().value!;
      const [accountId, queue] = turn;
      const item = queue.peek()!;
      const isDropped = !isWanted(item);
      const fits =
        taken.length === 0 || (taken.length < limits.maxInputs && tokens + item.tokens <= limits.maxTokens);
      if (!isDropped && !fits) break;
      queue.shift();
      this.#size -= 1;
      // With nobody else there, it is its turn again.
      if (queue.length === 0 || this.#accounts.size > 1) {
        this.#accounts.delete(accountId);
        if (queue.length > 0) this.#accounts.set(accountId, queue);
        turn = null;
      }
      if (isDropped) continue;
      taken.push(item);
      tokens += item.tokens;
    }
    return taken;
  }

  /** Everything, in no order that matters. */
  drain(): T[] {
    const all = [...this.#accounts.values()].flatMap((queue) => queue.drain());
    this.#accounts.clear();
    this.#size = 0;
    return all;
  }
}

/** First in, first out, without moving what is behind. */
class Queue<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): void {
    this.#head += 1;
    if (this.#head > 1_024 && this.#head * 2 > this.#items.length) this.#dropHead();
  }

  drain(): T[] {
    return this.#items.slice(this.#head);
  }

  #dropHead(): void {
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
