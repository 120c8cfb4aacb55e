import type { Socket } from 'node:net';

export interface UnauthenticatedLimits {
  /** Maximum number. Above this, the connection that has been silent longest is closed. */
  readonly maxUnauthenticated?: number | undefined;
  /** A connection that is silent for this long is closed. */
  readonly unauthenticatedIdleMs?: number | undefined;
}

/**
 * Limits the number and idle time of connections that have not authenticated yet, because every process on the machine
 * can open them. Authenticated connections do not count. So unauthenticated clients can neither fill the memory nor
 * lock others out. If new connections were refused at the limit instead, idle ones would lock others out.
 */
export class UnauthenticatedSockets {
  readonly #maxSockets: number;
  readonly #idleMs: number;
  /** When each socket last sent a message, longest silent first. */
  readonly #lastMessageAtMs = new Map<Socket, number>();
  readonly #rejected = new WeakSet<Socket>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * The idle limit must be longer than ten seconds, because a driver's monitor never authenticates and sends `hello` at
   * this interval.
   */
  constructor({ maxUnauthenticated = 256, unauthenticatedIdleMs = 60_000 }: UnauthenticatedLimits) {
    this.#maxSockets = maxUnauthenticated;
    this.#idleMs = unauthenticatedIdleMs;
  }

  add(socket: Socket): void {
    socket.once('close', () => this.#lastMessageAtMs.delete(socket));
    this.#recordMessage(socket);
    if (this.#lastMessageAtMs.size <= this.#maxSockets) return;
    const [longestSilent] = this.#lastMessageAtMs.keys();
    this.#close(longestSilent!);
  }

  has(socket: Socket): boolean {
    return this.#lastMessageAtMs.has(socket);
  }

  /** Call this when the socket has sent a complete message. */
  recordActivity(socket: Socket): void {
    if (this.has(socket)) this.#recordMessage(socket);
  }

  /** Call this when the client has authenticated. */
  release(socket: Socket): void {
    this.#lastMessageAtMs.delete(socket);
  }

  /**
   * Call this when authentication failed. Nothing more is read from the connection, and it is closed after the error
   * response.
   */
  markRejected(socket: Socket): void {
    this.#rejected.add(socket);
  }

  isRejected(socket: Socket): boolean {
    return this.#rejected.has(socket);
  }

  closeAll(): void {
    clearTimeout(this.#timer);
    for (const socket of Array.from(this.#lastMessageAtMs.keys())) this.#close(socket);
  }

  #recordMessage(socket: Socket): void {
    this.#lastMessageAtMs.delete(socket);
    this.#lastMessageAtMs.set(socket, performance.now());
    this.#timer ??= this.#wait(this.#idleMs);
  }

  #close(socket: Socket): void {
    this.#lastMessageAtMs.delete(socket);
    socket.destroy();
  }

  #wait(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#closeSilent(), ms).unref();
  }

  #closeSilent(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    for (const [socket, lastMessageAtMs] of this.#lastMessageAtMs) {
      const remainingMs = lastMessageAtMs + this.#idleMs - nowMs;
      if (remainingMs > 0) {
        this.#timer = this.#wait(remainingMs);
        return;
      }
      this.#close(socket);
    }
  }
}
