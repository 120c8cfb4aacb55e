/** What waits in a line: whose it is, and what it takes of a call's limits. */
export interface FairItem {
  readonly accountId: string;
  readonly tokens: number;
  /** Items of one group are worth more together: it is done when the last of them is. */
  readonly group: unknown;
}

export interface CallLimits {
  readonly maxInputs: number;
  readonly maxTokens: number;
}

export interface CallPlan extends CallLimits {
  /** So many are enough, unless a group of which a part is among them is whole with less than twice as many. */
  readonly enough: number;
}

/** What an account may add to a call before it is another's turn, once each of them has something in it. */
const turnInputs = 256;

/** Who is apart has every fourth call at the most while others wait, and of that no more than their accounts' part. */
const callsBeforeApart = 3;

/**
 * A line in which accounts take turns: however many items one of them has put in, the next call has room for the others'.
 * Items of one account keep their order.
 */
export class FairLine<T extends FairItem> {
  /** In the order of their turns: who was served goes to the end. */
  readonly #accounts = new Map<string, Queue<T>>();
  readonly #isApart: (accountId: string) => boolean;
  /** Since the last of those who are apart. */
  #callsOfOthers = 0;
  #size = 0;

  /** @param isApart whether an account's items go with nobody's but those of others who are apart */
  constructor(isApart: (accountId: string) => boolean = () => false) {
    this.#isApart = isApart;
  }

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
   * What goes with one call: one item of each account in turn, then many of one account in turn; an item too large for any
   * call goes alone. Items that are not wanted any more are dropped on the way.
   */
  take(plan: CallPlan, isWanted: (item: T) => boolean): T[] {
    const { accounts, areApart } = this.#chooseAccounts(plan.enough);
    const isForAll = !areApart || accounts.length === this.#accounts.size;
    const call = new Call(isForAll ? plan : this.#narrow(plan, accounts.length), isWanted);
    if (accounts.length > 1) this.#takeTurns(accounts, call, 1);
    while (!call.isFull && accounts.some((id) => this.#accounts.has(id))) {
      this.#takeTurns(accounts, call, turnInputs);
    }
    return call.items;
  }

  /** Accounts that share the next call, in the order of their turns. */
  #chooseAccounts(most: number): { readonly accounts: readonly string[]; readonly areApart: boolean } {
    const [apart, others]: [string[], string[]] = [[], []];
    for (const id of this.#accounts.keys()) {
      (this.#isApart(id) ? apart : others).push(id);
      if (others.length === most) break;
    }
    const areApart = others.length === 0 || (apart.length > 0 && this.#callsOfOthers >= callsBeforeApart);
    this.#callsOfOthers = areApart ? 0 : this.#callsOfOthers + 1;
    return areApart ? { accounts: apart, areApart } : { accounts: others, areApart };
  }

  /** To what so many accounts would have of a call that all of them share. */
  #narrow(plan: CallPlan, accounts: number): CallPlan {
    const enough = Math.max(1, Math.ceil((plan.enough * accounts) / this.#accounts.size));
    return { ...plan, enough, maxInputs: enough };
  }

  #takeTurns(accounts: readonly string[], call: Call<T>, mostOfEach: number): void {
    for (const accountId of accounts) {
      const queue = this.#accounts.get(accountId);
      if (queue === undefined) continue;
      if (call.isFull) return;
      const taken = call.take(queue, mostOfEach);
      // What there was no room for is first in the next call.
      if (taken === 0) return;
      this.#size -= taken;
      this.#accounts.delete(accountId);
      if (queue.length > 0) this.#accounts.set(accountId, queue);
    }
  }

  /** Everything, in no order that matters. */
  drain(): T[] {
    const all = [...this.#accounts.values()].flatMap((queue) => queue.drain());
    this.#accounts.clear();
    this.#size = 0;
    return all;
  }
}

/** A call that is being filled. */
class Call<T extends FairItem> {
  readonly items: T[] = [];
  readonly #plan: CallPlan;
  readonly #isWanted: (item: T) => boolean;
  #tokens = 0;
  #hasNoRoom = false;

  constructor(plan: CallPlan, isWanted: (item: T) => boolean) {
    this.#plan = plan;
    this.#isWanted = isWanted;
  }

  get isFull(): boolean {
    return this.#hasNoRoom || this.items.length >= this.#plan.enough;
  }

  /** @returns how many items left the queue */
  take(queue: Queue<T>, most: number): number {
    const before = queue.length;
    this.#takeUpTo(Math.min(this.#plan.enough, this.items.length + most), queue);
    if (this.isFull && most > 1) this.#finishGroup(queue);
    return before - queue.length;
  }

  /** What was begun at the end of a call is rather ended with it, where that is not much more. */
  #finishGroup(queue: Queue<T>): void {
    const { enough, maxInputs } = this.#plan;
    const { group } = this.items.at(-1)!;
    const room = Math.min(maxInputs, 2 * enough) - this.items.length;
    const rest = queue.countStart((item) => item.group === group, room + 1);
    if (rest <= room) this.#takeUpTo(this.items.length + rest, queue);
  }

  #takeUpTo(most: number, queue: Queue<T>): void {
    while (this.items.length < most && !this.#hasNoRoom) {
      const item = queue.peek();
      if (item === undefined) return;
      const isDropped = !this.#isWanted(item);
      const fits = this.items.length === 0 || this.#tokens + item.tokens <= this.#plan.maxTokens;
      if (!isDropped && !fits) {
        this.#hasNoRoom = true;
        return;
      }
      queue.shift();
      if (isDropped) continue;
      this.items.push(item);
      this.#tokens += item.tokens;
    }
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

  /** How many at the start are such, counted up to a bound. */
  countStart(isSuch: (item: T) => boolean, bound: number): number {
    let count = 0;
    while (count < bound && count < this.length && isSuch(this.#items[this.#head + count]!)) count += 1;
    return count;
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
