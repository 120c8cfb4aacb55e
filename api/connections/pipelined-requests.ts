import type { IncomingMessage, ServerResponse } from 'node:http';
import { FairBudget } from '../../shared/fairness/fair-budget.ts';
import type { Connection } from './connection.ts';
import { readAhead } from './node-internals.ts';

/** What a request holds while it waits, beside its head and its body. */
const requestBytes = 2 * 1024;
/** So much of its body is read meanwhile. */
const maxBodyBytes = 64 * 1024;
/** On all connections together, shared by address: some 16 000 requests with short heads and no body. */
const maxWaitingBytes = 16_384 * requestBytes;

/** A connection with more is not read meanwhile. With less it is, so that a caller who leaves is noticed at once. */
const maxReadAheadBytes = 64 * requestBytes;

/** The requests of one connection that wait for their turn. */
interface Waiting {
  /** What they hold together. */
  bytes: number;
  /** @returns false where the caller's network has its share of what may wait */
  add(bytes: number): boolean;
  remove(bytes: number): void;
}

/**
 * Handles the requests of one connection one after the other. HTTP/1.1 lets a client send more of them before the first
 * is answered. Responses keep the order of the requests in any case, so working on them at once would only let one
 * connection have any number under way. While many wait, or large ones, nothing more is read, so there are never more
 * than that and what one read brings, which is 64 KB. A request whose connection has closed by its turn is never begun.
 */
export class PipelinedRequests {
  readonly #budget: FairBudget;
  readonly #waiting = new Map<Connection, Waiting>();

  /** @param capacity in bytes */
  constructor(capacity = maxWaitingBytes) {
    this.#budget = new FairBudget({ capacity });
  }

  /** How many bytes those that wait hold, on all connections. */
  get held(): number {
    return this.#budget.held;
  }

  /** Calls `begin` once all responses before this one have been sent, which is when Node gives it its socket. */
  wait(connection: Connection, request: IncomingMessage, response: ServerResponse, begin: () => void): void {
    const waiting = this.#waiting.get(connection) ?? this.#open(connection);
    const bytes = countBytes(request);
    if (waiting?.add(bytes) !== true) {
      connection.socket.destroy();
      return;
    }
    readAhead(request, maxBodyBytes);
    response.once('socket', () => {
      connection.response = response;
      waiting.remove(bytes);
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
      if (waiting.bytes < maxReadAheadBytes) return;
      connection.readAgainAtMs = Infinity;
      socket.pause();
    };
    const close = (): void => {
      share.release();
      socket.off('resume', pause).off('close', close);
      this.#waiting.delete(connection);
    };
    const waiting: Waiting = {
      bytes: 0,
      add(bytes) {
        if (!share.tryGrow(this.bytes + bytes)) return false;
        this.bytes += bytes;
        pause();
        return true;
      },
      remove(bytes) {
        const wasHeldBack = this.bytes >= maxReadAheadBytes;
        this.bytes -= bytes;
        share.shrink(this.bytes);
        if (this.bytes === 0) close();
        if (!wasHeldBack || this.bytes >= maxReadAheadBytes) return;
        connection.readAgainAtMs = performance.now();
        socket.resume();
      },
    };
    socket.on('resume', pause).once('close', close);
    this.#waiting.set(connection, waiting);
    return waiting;
  }
}

/** What a request takes while it waits, by its head. A body that is sent in chunks may be of any length. */
function countBytes({ url, headers, rawHeaders }: IncomingMessage): number {
  const length =
    headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
  let bytes = requestBytes + (url?.length ?? 0) + Math.min(length, maxBodyBytes);
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
