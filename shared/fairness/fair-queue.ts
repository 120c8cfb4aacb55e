// decision 0037
/** A queued item, as returned to the code that added it. */
export interface QueueEntry<T> {
  /** The account, or the client network if there is no account. Holders take turns. */
  readonly holder: string;
  readonly item: T;
}

interface Node<T> extends QueueEntry<T> {
  previous: Node<T> | null;
  next: Node<T> | null;
  /** Null once the entry has been removed. */
  queue: HolderQueue<T> | null;
}

/**
 * One holder's entries, in FIFO order. A linked list, so that removing an entry from the middle takes constant time.
 */
interface HolderQueue<T> {
  readonly holder: string;
  head: Node<T> | null;
  tail: Node<T> | null;
  count: number;
}

/**
 * A queue in which holders take turns: after one entry of a holder is served, the next turn goes to another holder.
 * Entries of one holder stay in FIFO order. A holder that was served moves behind the others, and one that starts to
 * wait joins at the end.
 */
export class FairQueue<T> {
  /** Holders with entries, in the order of their turns. */
  readonly #holders = new Map<string, HolderQueue<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Number of holders with at least one entry. */
  get holderCount(): number {
    return this.#holders.size;
  }

  countOf(holder: string): number {
    return this.#holders.get(holder)?.count ?? 0;
  }

  /** The waiting holders, in the order of their turns. */
  holders(): IterableIterator<string> {
    return this.#holders.keys();
  }

  add(holder: string, item: T): QueueEntry<T> {
    let queue = this.#holders.get(holder);
    if (queue === undefined) {
      queue = { holder, head: null, tail: null, count: 0 };
      this.#holders.set(holder, queue);
    }
    const node: Node<T> = { holder, item, previous: queue.tail, next: null, queue };
    if (queue.tail === null) queue.head = node;
    else queue.tail.next = node;
    queue.tail = node;
    queue.count += 1;
    this.#size += 1;
    return node;
  }

  /** The first entry of each holder, in the order of the holders' turns. The queue must not change during iteration. */
  *heads(): Generator<QueueEntry<T>> {
    for (const { head } of this.#holders.values()) yield head!;
  }

  /** All entries, holder by holder. The queue must not change during iteration. */
  *entries(): Generator<QueueEntry<T>> {
    for (const { head } of this.#holders.values()) {
      for (let node = head; node !== null; node = node.next) yield node;
    }
  }

  /** The entry whose turn it is. */
  peek(): QueueEntry<T> | undefined {
    const [queue] = this.#holders.values();
    return queue?.head ?? undefined;
  }

  headOf(holder: string): QueueEntry<T> | undefined {
    return this.#holders.get(holder)?.head ?? undefined;
  }

  tailOf(holder: string): QueueEntry<T> | undefined {
    return this.#holders.get(holder)?.tail ?? undefined;
  }

  /** Removes an entry; its holder keeps its turn. @returns false if it had already been removed */
  remove(entry: QueueEntry<T>): boolean {
    const node = entry as Node<T>;
    const { queue } = node;
    if (queue === null) return false;
    node.queue = null;
    if (node.previous === null) queue.head = node.next;
    else node.previous.next = node.next;
    if (node.next === null) queue.tail = node.previous;
    else node.next.previous = node.previous;
    queue.count -= 1;
    this.#size -= 1;
    if (queue.count === 0) this.#holders.delete(queue.holder);
    return true;
  }

  /** Removes an entry because it is served. Its holder moves behind the others. */
  serve(entry: QueueEntry<T>): T {
    this.remove(entry);
    this.rotate(entry.holder);
    return entry.item;
  }

  /** Moves the holder behind the others. */
  rotate(holder: string): void {
    const queue = this.#holders.get(holder);
    if (queue === undefined) return;
    this.#holders.delete(holder);
    this.#holders.set(holder, queue);
  }

  /** Empties the queue. @returns all items, holder by holder */
  drain(): T[] {
    const items: T[] = [];
    for (const queue of this.#holders.values()) {
      for (let node = queue.head; node !== null; node = queue.head) {
        items.push(node.item);
        this.remove(node);
      }
    }
    return items;
  }
}
