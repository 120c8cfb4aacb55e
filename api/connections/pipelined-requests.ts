import type { ServerResponse } from 'node:http';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { Connection } from './connection.ts';

/** On all connections together, shared by address. Each holds two kilobytes. */
const maxWaitingRequests = 16_384;

/** A connection with more is not read meanwhile. With fewer it is, so that a caller who leaves is noticed at once. */
const maxReadAhead = 64;

/** The requests of one connection that wait for their turn. */
interface Waiting {
  count: number;
  /** @returns false where the caller's network has its share of what may wait */
  add(): boolean;
  remove(): void;
}

/**
 * Handles the requests of one connection one after the other. HTTP/1.1 lets a client send more of them before the first
 * is answered. Responses keep the order of the requests in any case, so working on them at once would only let one
 * connection have any number under way. While many wait nothing more is read, so there are never more than that and what
 * one read brings, which is 64 KB. A request whose connection has closed by its turn is never begun.
 */
export class PipelinedRequests {
  readonly #budget: FairBudget;
  readonly #waiting = new Map<Connection, Waiting>();

  constructor(capacity = maxWaitingRequests) {
    this.#budget = new FairBudget({ capacity });
  }

  /** How many wait, on all connections. */
  get size(): number {
    return this.#budget.held;
  }

  /** Calls `begin` once all responses before this one have been sent, which is when Node gives it its socket. */
  wait(connection: Connection, response: ServerResponse, begin: () => void): void {
    const waiting = this.#waiting.get(connection) ?? this.#open(connection);
    if (waiting?.add() !== true) {
      connection.socket.destroy();
      return;
    }
    response.once('socket', () => {
      waiting.remove();
      // Node has yet to finish giving the response its socket.
      process.nextTick(begin);
    });
  }

  /** @returns null where the caller's network has its share */
  #open(connection: Connection): Waiting | null {
    const { socket, network } = connection;
    const share = this.#budget.tryAcquire(network, 0);
    if (share === null) return null;
    // Node reads on after each message, and with each body that is read; it says so by this event.
    const pause = (): void => {
      if (waiting.count >= maxReadAhead) socket.pause();
    };
    const close = (): void => {
      share.release();
      socket.off('resume', pause).off('close', close);
      this.#waiting.delete(connection);
    };
    const waiting: Waiting = {
      count: 0,
      add() {
        if (!share.tryGrow(this.count + 1)) return false;
        this.count += 1;
        pause();
        return true;
      },
      remove() {
        this.count -= 1;
        share.shrink(this.count);
        if (this.count === 0) close();
        if (this.count === maxReadAhead - 1) socket.resume();
      },
    };
    socket.on('resume', pause).once('close', close);
    this.#waiting.set(connection, waiting);
    return waiting;
  }
}
