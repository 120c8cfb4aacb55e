import type { Readable } from 'node:stream';

import { Pool, type buildConnector } from 'undici';

import type { HttpHeaders } from './http-failure.ts';
import { HttpExchange } from './http-exchange.ts';
import { stripTrailing } from '../../shared/platform/runtime/strip-trailing.ts';

export interface HttpTimeouts {
  /** Until the TCP and TLS handshakes are done. Measured by undici's timer, which may be up to a second late. */
  readonly connectMs: number;
  /** From writing the request to the first byte of the response's body. */
  readonly firstByteMs: number;
  /** The same for streamed responses; defaults to `firstByteMs`. */
  readonly streamFirstByteMs?: number;
  /** Maximum silence of the vendor within a body, while we are ready to read. */
  readonly betweenChunksMs: number;
  /** For the whole call, including the wait for a free connection. */
  readonly totalMs: number;
}

export const DEFAULT_HTTP_TIMEOUTS: HttpTimeouts = {
  connectMs: 10_000,
  firstByteMs: 120_000,
  betweenChunksMs: 60_000,
  totalMs: 600_000,
};

export interface HttpClientOptions {
  /** Includes the path, e.g. `https://api.example.com/v1`. If it has a query, that is added to every call. */
  readonly baseUrl: string;
  readonly timeouts?: HttpTimeouts;
  /** Maximum number of open sockets; further calls wait for one. */
  readonly connections?: number;
  /** Sent with each call, unless the call has a header of the same name. In lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HttpPost {
  /** Appended to the base URL's path. Starts with a slash, and may end with a query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A body that is sent in pieces requires a `content-length` among the headers. */
  readonly body: Buffer | string | Readable;
  readonly signal: AbortSignal;
  readonly isStream?: boolean;
  /** For a stream whose parts are images: each part may take as long as a complete response. */
  readonly isSlowStream?: boolean;
  /** Called when the request is written to a connection. */
  readonly onSent?: (() => void) | undefined;
}

/**
 * A response whose headers have arrived. Its body is read once, with one of these methods. All reject with
 * UpstreamError, or with the signal's reason once it is aborted.
 */
export interface HttpResponse {
  readonly status: number;
  readonly headers: HttpHeaders;
  /** Reads the whole body. Rejects if it is longer than `maxBytes`, without holding more than that in memory. */
  readAll(maxBytes: number): Promise<Buffer>;
  /**
   * Returns the result of `read` for the whole body. The body is only valid during that call, so the result must not
   * refer to it. For bodies that are large and frequent.
   */
  readLarge<T>(maxBytes: number, read: (body: Buffer) => T): Promise<T>;
  /** Reads at most the first `maxBytes` and releases the remaining body. */
  readStart(maxBytes: number): Promise<Buffer>;
  /** Reads the next chunk; null means the end. The socket is paused while too much is unread. */
  next(): Promise<Buffer | null>;
  /**
   * Stops reading the body. If the body ends soon, its connection is reused; otherwise the connection is closed. Safe
   * to call at any time, even after the end.
   */
  release(): void;
  /** Aborts the call immediately. Safe to call at any time. */
  abort(): void;
}

export interface HttpClient {
  /** Resolves when the response's headers have arrived, for any status. */
  post(request: HttpPost): Promise<HttpResponse>;
  /** Waits for running calls, then closes the sockets. */
  close(): Promise<void>;
}

const DEFAULT_CONNECTIONS = 256;

/**
 * What a socket reads in one turn of the event loop. With undici's 64 KB, a response with 2048 vectors takes hundreds of
 * turns, and so seconds if each of them also does other work.
 */
const socketBytes = 256 * 1024;

/**
 * Creates a pool of keep-alive HTTP/1.1 connections to one server, with one call per connection at a time. It does not
 * follow redirects: vendors' APIs do not use them, and a key must not be sent to another host.
 */
export function createHttpClient({
  baseUrl,
  timeouts = DEFAULT_HTTP_TIMEOUTS,
  connections = DEFAULT_CONNECTIONS,
  headers: ownHeaders = {},
}: HttpClientOptions): HttpClient {
  const base = new URL(baseUrl);
  if (base.username !== '' || base.password !== '') {
    throw new TypeError('the base URL of an upstream must not contain a user name or a password');
  }
  const basePath = stripTrailing(base.pathname, '/');
  const streamTimeouts = { ...timeouts, firstByteMs: timeouts.streamFirstByteMs ?? timeouts.firstByteMs };
  const slowStreamTimeouts = {
    ...timeouts,
    betweenChunksMs: Math.max(timeouts.betweenChunksMs, timeouts.firstByteMs),
  };
  const pool = new Pool(base.origin, {
    connections,
    // One request per connection at a time: undici's setting for no pipelining with keep-alive.
    pipelining: 1,
    // The exchange times the response itself, because undici's timers are only accurate to half a second.
    headersTimeout: 0,
    bodyTimeout: 0,
    // undici's type lacks what it passes on to `net.connect`.
    connect: { timeout: timeouts.connectMs, highWaterMark: socketBytes } as buildConnector.BuildOptions,
  });

  return {
    async post({ path, headers, body, signal, isStream = false, isSlowStream = false, onSent }) {
      signal.throwIfAborted();
      const times = isSlowStream ? slowStreamTimeouts : isStream ? streamTimeouts : timeouts;
      const exchange = new HttpExchange(base.host, times, signal, onSent);
      pool.dispatch(
        {
          method: 'POST',
          path: basePath + addQuery(path, base.search),
          headers: { ...ownHeaders, ...headers },
          body,
        },
        exchange,
      );
      return await exchange.response;
    },
    close: () => pool.close(),
  };
}

function addQuery(path: string, search: string): string {
  return path.includes('?') ? path + search.replace('?', '&') : path + search;
}
