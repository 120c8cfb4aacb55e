import type { QueueName } from '../../../shared/work/queue/job-kinds.ts';
import type { Frame } from '../../../shared/work/replies/frame.ts';
import type { PendingReply } from './pending-reply.ts';

/**
 * If a caller disconnects during a vendor call, the call has certainly ended this long after the deadline for the start
 * of the request.
 */
const maxCallMs = 30 * 60_000;

/**
 * Counts the requests in progress per queue and account. If the caller disconnects, the request stays in the count
 * while a worker runs it, because it still occupies the worker.
 */
export class RequestsInFlight {
  readonly #counts = new Map<string, number>();
  /** Requests whose callers disconnected, by request id. */
  readonly #disconnected = new Map<string, PendingReply>();
  readonly #onEnd: (requestId: string) => void;

  /** @param onEnd called when no more frames of a request will arrive */
  constructor(onEnd: (requestId: string) => void) {
    this.#onEnd = onEnd;
  }

  countOf(queue: QueueName, accountId: string): number {
    return this.#counts.get(countKeyOf(queue, accountId)) ?? 0;
  }

  /** Whether a request without a pending reply has none because its caller disconnected. */
  hasDisconnectedFrom(requestId: string): boolean {
    return this.#disconnected.has(requestId);
  }

  add(pending: PendingReply): void {
    this.#change(pending, 1);
  }

  end(pending: PendingReply): void {
    this.#change(pending, -1);
    pending.onEnded?.();
    this.#onEnd(pending.request.requestId);
  }

  /** Records that the caller disconnected. The request stays in the count until its worker reports its end. */
  markDisconnected(pending: PendingReply): void {
    this.#disconnected.set(pending.request.requestId, pending);
  }

  /** Ends a request whose caller disconnected. */
  endDisconnected(requestId: string): void {
    const pending = this.#disconnected.get(requestId);
    if (pending === undefined) return;
    this.#disconnected.delete(requestId);
    this.end(pending);
  }

  /** Handles a frame of a request that has no pending reply. */
  handleFrame({ kind, requestId, payload }: Frame): void {
    switch (kind) {
      case 'accepted': {
        const pending = this.#disconnected.get(requestId);
        if (pending !== undefined) pending.workerId = payload.toString();
        return;
      }
      case 'result':
      case 'stored':
      // The caller disconnected, so nobody requests the offered result. The worker notices that and stops.
      case 'offered':
      case 'error':
        this.endDisconnected(requestId);
        return;
      case 'delta':
      case 'facts':
      case 'moved':
      case 'piece':
      case 'mark':
        return;
      default:
        kind satisfies never;
    }
  }

  /** Ends requests that will get no more frames because their worker died or their job is gone. */
  endLost(queue: QueueName, alive: ReadonlySet<string>): void {
    for (const [requestId, { queue: requestQueue, workerId, request }] of this.#disconnected) {
      if (requestQueue !== queue) continue;
      const isDead = workerId !== null && !alive.has(workerId);
      if (isDead || Date.now() > request.deadlineAtMs + maxCallMs) this.endDisconnected(requestId);
    }
  }

  #change({ queue, request }: PendingReply, by: number): void {
    const name = countKeyOf(queue, request.accountId);
    const count = (this.#counts.get(name) ?? 0) + by;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }
}

const countKeyOf = (queue: QueueName, accountId: string): string => `${queue} ${accountId}`;
