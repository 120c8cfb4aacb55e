import type { IncomingMessage, ServerResponse } from 'node:http';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import type { Connection } from './connection.ts';
import { readAhead } from './node-internals.ts';

/** Memory of a waiting request in addition to its head and body. */
const requestBytes = 2 * 1024;
/** Maximum bytes of its body that are buffered while it waits. */
const maxBodyBytes = 64 * 1024;
/**
 * Limit for all connections together, shared fairly among networks: some 16 000 requests with short heads and no body.
 */
const maxWaitingBytes = 16_384 * requestBytes;

/**
 * Reading of a connection pauses when its waiting requests have this many bytes. Below that it continues, so that a
 * disconnect is noticed immediately.
 */
const maxReadAheadBytes = 64 * requestBytes;

/** The waiting requests of one connection. */
interface WaitingRequests {
  /** Their total size in bytes. */
  bytes: number;
  /** @returns false if the client's network has used its share */
  add(bytes: number): boolean;
  remove(bytes: number): void;
}

/**
 * Handles the requests of a connection one after the other. HTTP/1.1 lets a client send more requests before it has the
 * first response. Responses must keep the order of the requests, so handling requests concurrently would gain little,
 * and one connection could have any number of requests in progress. While many or large requests wait, reading pauses,
 * so at most the waiting requests and one more read of 64 KB are buffered. If the connection closes while a request
 * waits, the request is never started.
 */
export class PipelinedRequests {
  readonly #budget: FairBudget;
  readonly #waiting = new Map<Connection, WaitingRequests>();

  /** @param capacity in bytes */
  constructor(capacity = maxWaitingBytes) {
    this.#budget = new FairBudget({ capacity });
  }

  /** Bytes held by waiting requests of all connections. */
  get held(): number {
    return this.#budget.held;
  }

  /** Calls `begin` once all earlier responses have been sent, which is when Node assigns the socket to this one. */
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
      // Start after Node has finished assigning the socket.
      process.nextTick(begin);
    });
  }

  /** @returns null if the client's network has used its share */
  #open(connection: Connection): WaitingRequests | null {
    const { socket, network } = connection;
    const share = this.#budget.tryAcquire(network, 0);
    if (share === null) return null;
    // Node resumes reading by itself after each message and while a body is read. The `resume` event lets this pause
    // again.
    const pause = (): void => {
      if (waiting.bytes < maxReadAheadBytes) return;
      connection.readingResumedAtMs = Infinity;
      socket.pause();
    };
    const close = (): void => {
      share.release();
      socket.off('resume', pause).off('close', close);
      this.#waiting.delete(connection);
    };
    const waiting: WaitingRequests = {
      bytes: 0,
      add(bytes) {
        if (!share.tryGrow(this.bytes + bytes)) return false;
        this.bytes += bytes;
        pause();
        return true;
      },
      remove(bytes) {
        const wasPaused = this.bytes >= maxReadAheadBytes;
        this.bytes -= bytes;
        share.shrink(this.bytes);
        if (this.bytes === 0) close();
        if (!wasPaused || this.bytes >= maxReadAheadBytes) return;
        connection.readingResumedAtMs = performance.now();
        socket.resume();
      },
    };
    socket.on('resume', pause).once('close', close);
    this.#waiting.set(connection, waiting);
    return waiting;
  }
}

/**
 * Estimates the size of a waiting request from its head. A chunked body may have any length, so the maximum is assumed.
 */
function countBytes({ url, headers, rawHeaders }: IncomingMessage): number {
  const length =
    headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
  let bytes = requestBytes + (url?.length ?? 0) + Math.min(length, maxBodyBytes);
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
