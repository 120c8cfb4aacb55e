import type { QueueName } from '../../shared/queue/job-kinds.ts';
import type { Frame } from '../../shared/reply/frame.ts';
import type { Waiter } from './waiter.ts';

/** A call of a vendor that goes on for a caller who left has ended so long after its deadline for beginning, to be sure. */
const longestCallMs = 30 * 60_000;

/**
 * The requests of each queue and account that have not ended: those that are waited for, and those that a worker goes on
 * with although their callers left, as leaving gives back nothing that others could use.
 */
export class UnderWay {
  readonly #counts = new Map<string, number>();
  /** By request. */
  readonly #left = new Map<string, Waiter>();

  countOf(queue: QueueName, accountId: string): number {
    return this.#counts.get(nameCount(queue, accountId)) ?? 0;
  }

  get hasLeft(): boolean {
    return this.#left.size > 0;
  }

  /** Of those whose callers left. */
  queuesOfLeft(): Set<QueueName> {
    return new Set(Array.from(this.#left.values(), ({ queue }) => queue));
  }

  add(waiter: Waiter): void {
    this.#change(waiter, 1);
  }

  end(waiter: Waiter): void {
    this.#change(waiter, -1);
    waiter.onEnded?.();
  }

  /** Its caller left: it counts until its worker says that it has ended. */
  leave(waiter: Waiter): void {
    this.#left.set(waiter.request.requestId, waiter);
  }

  /** One whose caller left has ended. */
  endLeft(requestId: string): void {
    const waiter = this.#left.get(requestId);
    if (waiter === undefined) return;
    this.#left.delete(requestId);
    this.end(waiter);
  }

  /** A frame for a request without a waiter. */
  take({ kind, requestId, payload }: Frame): void {
    switch (kind) {
      case 'accepted': {
        const waiter = this.#left.get(requestId);
        if (waiter !== undefined) waiter.workerId = payload.toString();
        return;
      }
      case 'result':
      case 'stored':
      // Its worker ends once it hears that nobody asks for the answer.
      case 'offered':
      case 'error':
        this.endLeft(requestId);
        return;
      case 'delta':
      case 'progress':
      case 'moved':
      case 'piece':
      case 'mark':
        return;
      default:
        kind satisfies never;
    }
  }

  /** Ends those that will not be heard of again: their worker died, or their job is gone. */
  endLost(queue: QueueName, alive: ReadonlySet<string>): void {
    for (const [requestId, { queue: own, workerId, request }] of this.#left) {
      if (own !== queue) continue;
      const isDead = workerId !== null && !alive.has(workerId);
      if (isDead || Date.now() > request.deadlineAtMs + longestCallMs) this.endLeft(requestId);
    }
  }

  #change({ queue, request }: Waiter, by: number): void {
    const name = nameCount(queue, request.accountId);
    const count = (this.#counts.get(name) ?? 0) + by;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }
}

const nameCount = (queue: QueueName, accountId: string): string => `${queue} ${accountId}`;
