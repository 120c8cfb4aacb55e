import { connect, type Socket } from 'node:net';
import { ResponseReader, type ParsedResponse } from './response-reader.ts';

export interface CallerOptions {
  readonly host: string;
  readonly port: number;
  readonly countsTokens: boolean;
  /** Returns after how many milliseconds to disconnect; null to wait for the response. */
  readonly chooseAbortMs?: () => number | null;
  /** How long to pause after each read. */
  readonly readPauseMs?: number;
  /** Returns the bytes of the next request. Null stops this caller. */
  readonly nextRequest: () => string | null;
  /** `firstByteMs` is the latency of the body's first byte; null unless tokens are counted. */
  readonly onResponse: (response: ParsedResponse, latencyMs: number, firstByteMs: number | null) => void;
  readonly onError: (reason: string) => void;
  readonly onAborted?: () => void;
}

/** Shared by all sockets, because each read is processed before the next one. */
const readBuffer = Buffer.allocUnsafe(256 * 1024);
/** Maximum bytes that a caller reads between two pauses. */
export const slowReadBytes = 64 * 1024;
const reconnectMs = 100;

/**
 * One caller: a keep-alive connection with one request in flight. It sends the next request as soon as the response
 * arrives.
 */
export class Caller {
  readonly #options: CallerOptions;
  #socket: Socket | null = null;
  #reader: ResponseReader | null = null;
  #sentAtMs = 0;
  #isWaiting = false;
  #abortTimer: NodeJS.Timeout | undefined;
  #isStopping = false;
  #onIdle: (() => void) | null = null;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  start(): void {
    const { host, port, countsTokens, readPauseMs = 0 } = this.#options;
    const buffer = readPauseMs === 0 ? readBuffer : Buffer.allocUnsafe(slowReadBytes);
    const reader = new ResponseReader(countsTokens, (response) => this.#onResponse(response));
    // Check the first response of a connection thoroughly.
    reader.keepsBody = true;
    const socket: Socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer,
        callback: (length) => {
          try {
            reader.push(buffer.subarray(0, length));
          } catch (error) {
            socket.destroy(error as Error);
          }
          if (readPauseMs > 0) setTimeout(() => socket.resume(), readPauseMs);
          return readPauseMs === 0;
        },
      },
    });
    this.#reader = reader;
    this.#socket = socket;
    let reason = 'the connection was closed before a response';
    socket.once('error', (error) => (reason = error.message));
    socket.once('close', () => this.#onClose(reason));
    this.#send();
  }

  /** Resolves when the last request has its response. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    if (this.#isWaiting) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#socket?.destroy();
  }

  #send(): void {
    const request = this.#options.nextRequest();
    if (request === null) {
      this.#isStopping = true;
      this.#onIdle?.();
      return;
    }
    this.#isWaiting = true;
    this.#sentAtMs = performance.now();
    this.#socket!.write(request, 'latin1');
    const abortMs = this.#options.chooseAbortMs?.() ?? null;
    if (abortMs !== null) this.#abortTimer = setTimeout(() => this.#abort(), abortMs);
  }

  #abort(): void {
    this.#isWaiting = false;
    this.#socket!.destroy();
    this.#options.onAborted?.();
  }

  #onResponse(response: ParsedResponse): void {
    this.#isWaiting = false;
    clearTimeout(this.#abortTimer);
    this.#reader!.keepsBody = false;
    const { firstByteAtMs } = response;
    const firstByteMs = firstByteAtMs === null ? null : firstByteAtMs - this.#sentAtMs;
    this.#options.onResponse(response, performance.now() - this.#sentAtMs, firstByteMs);
    if (this.#isStopping) this.#onIdle?.();
    else this.#send();
  }

  #onClose(reason: string): void {
    clearTimeout(this.#abortTimer);
    if (this.#isWaiting) this.#options.onError(reason);
    this.#isWaiting = false;
    if (this.#isStopping) this.#onIdle?.();
    else setTimeout(() => this.start(), reconnectMs);
  }
}
