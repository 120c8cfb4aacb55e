import { setMaxListeners } from 'node:events';

import type { Dispatcher } from 'undici';

import { BufferPool } from '../../shared/platform/runtime/buffer-pool.ts';
import { ChunkList } from '../../shared/platform/runtime/chunk-list.ts';

import type { HttpResponse, HttpTimeouts } from './http-client.ts';
import { type HttpHeaders, readHeader } from './http-failure.ts';
import { UpstreamError } from './upstream.ts';

/**
 * Above this many unread bytes, the socket is paused, so that a slow reader slows down the vendor instead of filling
 * memory.
 */
const MAX_UNREAD_BYTES = 64 * 1024;
/** How many bytes of a released body may still arrive before its connection is closed. */
const MAX_RELEASED_BYTES = 64 * 1024;
const MAX_RELEASED_MS = 1000;

/** For a smaller body, it is cheap to allocate a buffer. */
const minLargeBodyBytes = 64 * 1024;
const bodies = new BufferPool(64 * 1024 * 1024);

interface Reader {
  resolve(chunk: Buffer | null): void;
  reject(error: unknown): void;
}

/** A buffer that the rest of the body is copied to as it arrives. */
interface BodyTarget {
  readonly buffer: Buffer;
  length: number;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * One call: undici's handler on one side, the response's reader on the other. The first event among end, error, timeout
 * and abort determines the outcome; later ones are ignored.
 */
export class HttpExchange implements Dispatcher.DispatchHandler, HttpResponse {
  readonly response: Promise<HttpResponse>;
  status = 0;
  headers: HttpHeaders = {};

  readonly #host: string;
  readonly #timeouts: HttpTimeouts;
  readonly #signal: AbortSignal;
  readonly #totalTimer: NodeJS.Timeout;
  readonly #onAbort: () => void;
  readonly #onSent: (() => void) | undefined;
  #responseResolvers!: { resolve(response: HttpResponse): void; reject(error: unknown): void };
  #controller: Dispatcher.DispatchController | null = null;
  /** Runs until the first byte of the body, then between chunks while a reader waits. */
  #silenceTimer: NodeJS.Timeout | undefined;
  #reader: Reader | null = null;
  #target: BodyTarget | null = null;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #releasedBytes: number | null = null;
  #hasHead = false;
  #hasBody = false;
  #isDone = false;
  #failure: { error: unknown } | null = null;

  constructor(host: string, timeouts: HttpTimeouts, signal: AbortSignal, onSent?: () => void) {
    this.#host = host;
    this.#timeouts = timeouts;
    this.#signal = signal;
    this.#onSent = onSent;
    this.response = new Promise((resolve, reject) => {
      this.#responseResolvers = { resolve, reject };
    });
    this.#onAbort = () => this.#fail(signal.reason);
    // A large request may use one signal for many calls. Without this, Node would report a leak.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', this.#onAbort, { once: true });
    this.#totalTimer = setTimeout(() => {
      // A vendor that was responding has not failed: the request took longer than the limit.
      this.#fail(this.#timeout(`the call took longer than ${timeouts.totalMs} ms`, this.#hasBody));
    }, timeouts.totalMs);
  }

  // Called by undici.

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure !== null) {
      controller.abort(toError(this.#failure.error));
      return;
    }
    this.#onSent?.();
    this.#watchSilence(this.#timeouts.firstByteMs, 'no response');
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: HttpHeaders): void {
    if (status < 200 || this.#isDone) {
      return;
    }
    this.#hasHead = true;
    this.status = status;
    this.headers = headers;
    this.#responseResolvers.resolve(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#hasBody) {
      this.#hasBody = true;
      this.#endSilence();
      if (this.#target !== null) this.#watchBody();
    }
    if (this.#releasedBytes !== null) {
      this.#releasedBytes += chunk.length;
      if (this.#releasedBytes > MAX_RELEASED_BYTES) {
        this.abort();
      }
      return;
    }
    if (this.#isDone) {
      return;
    }
    if (this.#target !== null) {
      this.#silenceTimer?.refresh();
      this.#target.length += chunk.copy(this.#target.buffer, this.#target.length);
      return;
    }
    if (this.#reader !== null) {
      const reader = this.#reader;
      this.#reader = null;
      this.#endSilence();
      reader.resolve(chunk);
      return;
    }
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
    if (this.#unreadBytes > MAX_UNREAD_BYTES) {
      controller.pause();
    }
  }

  onResponseEnd(): void {
    this.#finish();
    this.#reader?.resolve(null);
    this.#reader = null;
    this.#target?.resolve();
    this.#target = null;
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.#fail(this.#describe(error));
  }

  // Called by the reader.

  next(): Promise<Buffer | null> {
    const chunk = this.#unread.shift();
    if (chunk !== undefined) {
      this.#unreadBytes -= chunk.length;
      // Not earlier: each time, undici reads what the socket has received in the meantime, copies it together with what
      // is still to be parsed, and stops after another `MAX_UNREAD_BYTES`. After every chunk, that would be more than
      // is read, and would grow without end.
      if (this.#unread.length === 0 && this.#controller?.paused === true) {
        this.#controller.resume();
      }
      return Promise.resolve(chunk);
    }
    if (this.#failure !== null) {
      return Promise.reject(this.#failure.error);
    }
    if (this.#isDone || this.#releasedBytes !== null) {
      return Promise.resolve(null);
    }
    if (this.#hasBody) this.#watchBody();
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  async readAll(maxBytes: number): Promise<Buffer> {
    const declared = this.#readDeclaredLength(maxBytes);
    const first = await this.next();
    if (first === null || first.length === declared) {
      await this.#readEnd();
      return first ?? Buffer.alloc(0);
    }
    if (declared > first.length) {
      // The length is known, so copy the chunks directly into the result; the body is never in memory twice.
      const whole = Buffer.allocUnsafe(declared);
      return whole.subarray(0, await this.#fill(whole, first.copy(whole)));
    }
    const chunks = new ChunkList();
    for (let chunk: Buffer | null = first; chunk !== null; chunk = await this.next()) {
      chunks.add(chunk);
      if (chunks.length > maxBytes) {
        throw this.#failTooLong(maxBytes);
      }
    }
    return chunks.take();
  }

  async readLarge<T>(maxBytes: number, read: (body: Buffer) => T): Promise<T> {
    const declared = this.#readDeclaredLength(maxBytes);
    if (!(declared >= minLargeBodyBytes)) return read(await this.readAll(maxBytes));
    return await bodies.use(declared, async (buffer) =>
      read(buffer.subarray(0, await this.#fill(buffer, 0))),
    );
  }

  /**
   * Copies the rest of the body to a buffer that has room for it. The socket is not paused meanwhile: of a large body,
   * each turn of the event loop would otherwise bring only a few chunks, however busy the process is.
   * @returns how many bytes the buffer has, including those before `start`
   */
  async #fill(buffer: Buffer, start: number): Promise<number> {
    let length = start;
    while (this.#unread.length > 0) length += (await this.next())!.copy(buffer, length);
    if (this.#isDone) {
      await this.#readEnd();
      return length;
    }
    const target = { buffer, length, resolve: ignore, reject: ignore as (error: unknown) => void };
    const whenFilled = new Promise<void>((resolve, reject) => Object.assign(target, { resolve, reject }));
    this.#target = target;
    if (this.#hasBody) this.#watchBody();
    if (this.#controller?.paused === true) this.#controller.resume();
    await whenFilled;
    return target.length;
  }

  async readStart(maxBytes: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let length = 0;
    while (length < maxBytes) {
      const chunk = await this.next();
      if (chunk === null) {
        break;
      }
      chunks.push(chunk);
      length += chunk.length;
    }
    this.release();
    return Buffer.concat(chunks).subarray(0, maxBytes);
  }

  release(): void {
    if (this.#isDone || this.#releasedBytes !== null) {
      return;
    }
    this.#releasedBytes = 0;
    this.#unread = [];
    this.#unreadBytes = 0;
    this.#endSilence();
    this.#silenceTimer = setTimeout(() => this.abort(), MAX_RELEASED_MS).unref();
    this.#controller?.resume();
  }

  abort(): void {
    this.#fail(new UpstreamError('unavailable', `the call to ${this.#host} was aborted`));
  }

  // Bookkeeping.

  /** Returns NaN if the headers do not include a length. */
  #readDeclaredLength(maxBytes: number): number {
    const declared = Number(readHeader(this.headers, 'content-length') ?? Number.NaN);
    if (declared > maxBytes) {
      throw this.#failTooLong(maxBytes);
    }
    return declared;
  }

  async #readEnd(): Promise<void> {
    if ((await this.next()) !== null) {
      throw new UpstreamError('unavailable', `${this.#host} sent more than it declared`);
    }
  }

  #failTooLong(maxBytes: number): UpstreamError {
    this.abort();
    return new UpstreamError('unavailable', `${this.#host} sent more than ${maxBytes} bytes`);
  }

  #watchBody(): void {
    this.#watchSilence(this.#timeouts.betweenChunksMs, 'the response stopped: nothing more');
  }

  #watchSilence(ms: number, what: string): void {
    this.#endSilence();
    this.#silenceTimer = setTimeout(() => {
      this.#fail(this.#timeout(`${what} within ${ms} ms`));
    }, ms);
  }

  #endSilence(): void {
    clearTimeout(this.#silenceTimer);
  }

  #timeout(what: string, isRequestFailure = false): UpstreamError {
    // undici passes the controller when it writes the request.
    const mayStillRun = this.#controller !== null;
    return new UpstreamError('timeout', `${this.#host}: ${what}`, { isRequestFailure, mayStillRun });
  }

  #describe(error: Error): UpstreamError {
    const code = readErrorCode(error);
    if (code === 'UND_ERR_CONNECT_TIMEOUT') {
      return this.#timeout(`no connection within ${this.#timeouts.connectMs} ms`);
    }
    const isUnreached = this.#controller === null;
    const what = this.#hasHead
      ? 'the response was cut off'
      : isUnreached
        ? 'no connection'
        : 'the connection was closed before a response';
    return new UpstreamError('unavailable', `${this.#host}: ${what} (${code})`, {
      isUnreached,
      cause: error,
    });
  }

  #fail(error: unknown): void {
    if (this.#isDone) {
      return;
    }
    this.#finish();
    this.#failure = { error };
    if (this.#signal.aborted || this.#releasedBytes !== null) {
      this.#unread = [];
      this.#unreadBytes = 0;
    }
    this.#controller?.abort(toError(error));
    if (!this.#hasHead) {
      this.#responseResolvers.reject(error);
    }
    this.#reader?.reject(error);
    this.#reader = null;
    this.#target?.reject(error);
    this.#target = null;
  }

  #finish(): void {
    this.#isDone = true;
    clearTimeout(this.#totalTimer);
    this.#endSilence();
    this.#signal.removeEventListener('abort', this.#onAbort);
  }
}

const ignore = (): void => undefined;

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error('aborted');
}

/** Returns Node's or undici's error code; the first one if several addresses were tried. */
function readErrorCode(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  const code = first instanceof Error && 'code' in first ? first.code : null;
  return typeof code === 'string' ? code : error.name;
}
