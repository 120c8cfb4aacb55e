import type { Socket } from 'node:net';

export interface UnauthenticatedLimits {
  /** Beyond this, the connection that has been silent for longest is closed. */
  readonly maxUnauthenticated?: number | undefined;
  /** A connection that is silent for this long is closed. */
  readonly unauthenticatedIdleMs?: number | undefined;
}

/**
 * Limits connections that have not authenticated yet, which every process on the machine can open. Their number and
 * silent time are bounded, and authenticated connections do not count, so strangers can neither fill the memory nor
 * keep others out. Refusing new connections at the limit would keep others out, because the old ones would stay.
 */
export class UnauthenticatedSockets {
  readonly #maxSockets: number;
  readonly #idleMs: number;
  /** When each socket was last heard from, longest silent first. */
  readonly #heardAtMs = new Map<Socket, number>();
  readonly #refused = new WeakSet<Socket>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * A driver's monitor never authenticates and sends `hello` every ten seconds, so the idle limit must be longer than
   * that.
   */
  constructor({ maxUnauthenticated = 256, unauthenticatedIdleMs = 60_000 }: UnauthenticatedLimits) {
    this.#maxSockets = maxUnauthenticated;
    this.#idleMs = unauthenticatedIdleMs;
  }

  add(socket: Socket): void {
    socket.once('close', () => this.#heardAtMs.delete(socket));
    this.#hear(socket);
    if (this.#heardAtMs.size <= this.#maxSockets) return;
    const [longestSilent] = this.#heardAtMs.keys();
    this.#close(longestSilent!);
  }

  has(socket: Socket): boolean {
    return this.#heardAtMs.has(socket);
  }

  /** Call this when the socket has sent a complete message. */
  hear(socket: Socket): void {
    if (this.has(socket)) this.#hear(socket);
  }

  /** Call this when the client has authenticated. */
  release(socket: Socket): void {
    this.#heardAtMs.delete(socket);
  }

  /**
   * Call this when authentication failed. Nothing more is read from the connection, and it ends with the error
   * response.
   */
  refuse(socket: Socket): void {
    this.#refused.add(socket);
  }

  isRefused(socket: Socket): boolean {
    return this.#refused.has(socket);
  }

  closeAll(): void {
    clearTimeout(this.#timer);
    for (const socket of Array.from(this.#heardAtMs.keys())) this.#close(socket);
  }

  #hear(socket: Socket): void {
    this.#heardAtMs.delete(socket);
    this.#heardAtMs.set(socket, performance.now());
    this.#timer ??= this.#wait(this.#idleMs);
  }

  #close(socket: Socket): void {
    this.#heardAtMs.delete(socket);
    socket.destroy();
  }

  #wait(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#closeSilent(), ms).unref();
  }

  #closeSilent(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    for (const [socket, heardAtMs] of this.#heardAtMs) {
      const leftMs = heardAtMs + this.#idleMs - nowMs;
      if (leftMs > 0) {
        this.#timer = this.#wait(leftMs);
        return;
      }
      this.#close(socket);
    }
  }
}
