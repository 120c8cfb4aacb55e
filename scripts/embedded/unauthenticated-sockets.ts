import type { Socket } from 'node:net';

export interface UnauthenticatedLimits {
  /** Beyond it, the one that has said nothing for longest is closed. */
  readonly maxUnauthenticated?: number | undefined;
  /** One that has said nothing for as long is closed. */
  readonly unauthenticatedIdleMs?: number | undefined;
}

/**
 * Connections that have not authenticated yet: every process of the machine can open them. Their number and the time
 * that they may be silent are bounded, and authenticated ones are not counted, so that strangers can neither fill the
 * memory nor keep others out. Refusing new connections at the bound would keep others out, because the first would stay.
 */
export class UnauthenticatedSockets {
  readonly #maxSockets: number;
  readonly #idleMs: number;
  /** When each was last heard, the longest silent first. */
  readonly #heardAtMs = new Map<Socket, number>();
  readonly #refused = new WeakSet<Socket>();
  #timer: NodeJS.Timeout | undefined;

  /** A driver's monitor never authenticates and says `hello` every ten seconds, so it may be silent for longer than that. */
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

  /** It has said something whole. */
  hear(socket: Socket): void {
    if (this.has(socket)) this.#hear(socket);
  }

  /** It has shown that it has the password. */
  release(socket: Socket): void {
    this.#heardAtMs.delete(socket);
  }

  /** What it said was not believed: nothing more is heard of it, and its connection ends with the answer to that. */
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
