/** An item in the queue, as the code that added it holds it. */
export interface QueueEntry<T> {
  readonly accountId: string;
  readonly item: T;
}

interface Node<T> extends QueueEntry<T> {
  previous: Node<T> | null;
  next: Node<T> | null;
  /** Null once the entry has left the queue. */
  account: AccountQueue<T> | null;
}

/** One account's entries, first in, first out; a linked list, so that an entry in the middle leaves in constant time. */
interface AccountQueue<T> {
  readonly accountId: string;
  head: Node<T> | null;
  tail: Node<T> | null;
  count: number;
}

/**
 * A queue in which accounts take turns: however many entries one account has added, the next turn is another's. The
 * entries of one account keep their order. An account that was served goes behind the others, and so does one that
 * begins to wait.
 */
export class FairQueue<T> {
  /** In the order of their turns. */
  readonly #accounts = new Map<string, AccountQueue<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Accounts that have at least one entry. */
  get accountCount(): number {
    return this.#accounts.size;
  }

  countOf(accountId: string): number {
    return this.#accounts.get(accountId)?.count ?? 0;
  }

  /** The accounts that wait, in the order of their turns. */
  accountIds(): IterableIterator<string> {
    return this.#accounts.keys();
  }

  add(accountId: string, item: T): QueueEntry<T> {
    let account = this.#accounts.get(accountId);
    if (account === undefined) {
      account = { accountId, head: null, tail: null, count: 0 };
      this.#accounts.set(accountId, account);
    }
    const node: Node<T> = { accountId, item, previous: account.tail, next: null, account };
    if (account.tail === null) account.head = node;
    else account.tail.next = node;
    account.tail = node;
    account.count += 1;
    this.#size += 1;
    return node;
  }

  /** The first entry of each account, in the order of the accounts' turns. The queue must not change meanwhile. */
  *heads(): Generator<QueueEntry<T>> {
    for (const { head } of this.#accounts.values()) yield head!;
  }

  /** All entries, account by account. The queue must not change meanwhile. */
  *entries(): Generator<QueueEntry<T>> {
    for (const { head } of this.#accounts.values()) {
      for (let node = head; node !== null; node = node.next) yield node;
    }
  }

  /** The entry whose turn it is. */
  peek(): QueueEntry<T> | undefined {
    const [account] = this.#accounts.values();
    return account?.head ?? undefined;
  }

  /** The account's first entry. */
  headOf(accountId: string): QueueEntry<T> | undefined {
    return this.#accounts.get(accountId)?.head ?? undefined;
  }

  /** Takes an entry out; its account keeps its turn. @returns false where the entry had left before */
  remove(entry: QueueEntry<T>): boolean {
    const node = entry as Node<T>;
    const { account } = node;
    if (account === null) return false;
    node.account = null;
    if (node.previous === null) account.head = node.next;
    else node.previous.next = node.next;
    if (node.next === null) account.tail = node.previous;
    else node.next.previous = node.previous;
    account.count -= 1;
    this.#size -= 1;
    if (account.count === 0) this.#accounts.delete(account.accountId);
    return true;
  }

  /** Takes an entry out because it is served: its account goes behind the others. */
  serve(entry: QueueEntry<T>): T {
    this.remove(entry);
    this.rotate(entry.accountId);
    return entry.item;
  }

  /** The account has had its turn. */
  rotate(accountId: string): void {
    const account = this.#accounts.get(accountId);
    if (account === undefined) return;
    this.#accounts.delete(accountId);
    this.#accounts.set(accountId, account);
  }

  /** Empties the queue. @returns all items, account by account */
  drain(): T[] {
    const items: T[] = [];
    for (const account of this.#accounts.values()) {
      for (let node = account.head; node !== null; node = account.head) {
        items.push(node.item);
        this.remove(node);
      }
    }
    return items;
  }
}
