import type { Readable } from 'node:stream';

import { Pool } from 'undici';

import type { HttpHeaders } from './http-failure.ts';
import { HttpExchange } from './http-exchange.ts';

export interface HttpTimeouts {
  /** Until the TCP and TLS handshakes are done. Measured by undici's clock, which may be up to a second late. */
  readonly connectMs: number;
  /** From when the request is written until the first byte of the response's body. */
  readonly firstByteMs: number;
  /** The same for streamed responses; defaults to `firstByteMs`. */
  readonly streamFirstByteMs?: number;
  /** Silence of the vendor within a body, while we are ready to read. */
  readonly betweenChunksMs: number;
  /** The whole call, including the wait for a free connection. */
  readonly totalMs: number;
}

export const DEFAULT_HTTP_TIMEOUTS: HttpTimeouts = {
  connectMs: 10_000,
  firstByteMs: 120_000,
  betweenChunksMs: 60_000,
  totalMs: 600_000,
};

export interface HttpClientOptions {
  /** Includes its path, e.g. `https://api.example.com/v1`. A query is added to every call. */
  readonly baseUrl: string;
  readonly timeouts?: HttpTimeouts;
  /** The most sockets held open; further calls wait for one. */
  readonly connections?: number;
}

export interface HttpPost {
  /** Appended to the base URL's path. Starts with a slash, and may end with its own query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A body sent in pieces has its `content-length` among the headers. */
  readonly body: Buffer | string | Readable;
  readonly signal: AbortSignal;
  readonly isStream?: boolean;
  /** A stream whose parts are images: the pause before each part may be as long as before a whole response. */
  readonly isSlowStream?: boolean;
  /** Called when the request is written to a connection. */
  readonly onSent?: (() => void) | undefined;
}

/**
 * A response whose headers have arrived. Its body has one reader, which uses one of these methods. All reject
 * with UpstreamError, or with the signal's reason once it has fired.
 */
export interface HttpResponse {
  readonly status: number;
  readonly headers: HttpHeaders;
  /** Reads the whole body. A longer one is an UpstreamError, and no more than `maxBytes` is ever held. */
  readAll(maxBytes: number): Promise<Buffer>;
  /**
   * Returns what `read` makes of the whole body. The body is only valid during that call, so the result must
   * not refer to it. For bodies that are large and frequent.
   */
  readLarge<T>(maxBytes: number, read: (body: Buffer) => T): Promise<T>;
  /** Reads at most this many first bytes and releases the rest. */
  readStart(maxBytes: number): Promise<Buffer>;
  /** Reads chunk by chunk; null is the end. The socket is paused while more than a little is unread. */
  next(): Promise<Buffer | null>;
  /**
   * Stops reading the body. If the body ends within a moment, its connection is reused; otherwise it is closed.
   * Safe to call at any time, also after the end.
   */
  release(): void;
  /** Aborts the call at once. Safe to call at any time. */
  abort(): void;
}

export interface HttpClient {
  /** Resolves when the response's headers have arrived, whatever its status. */
  post(request: HttpPost): Promise<HttpResponse>;
  /** Waits for the calls in progress, then closes the sockets. */
  close(): Promise<void>;
}

const DEFAULT_CONNECTIONS = 256;

/**
 * Creates a pool of keep-alive HTTP/1.1 connections to one server, with one call per connection at a time. It
 * does not follow redirects: a vendor's API has none, and a key must not go to another host.
 */
export function createHttpClient({
  baseUrl,
  timeouts = DEFAULT_HTTP_TIMEOUTS,
  connections = DEFAULT_CONNECTIONS,
}: HttpClientOptions): HttpClient {
  const base = new URL(baseUrl);
  if (base.username !== '' || base.password !== '') {
    throw new TypeError('the base URL of an upstream must not carry a user name or a password');
  }
  const basePath = base.pathname.replace(/\/+$/, '');
  const ofStreams = { ...timeouts, firstByteMs: timeouts.streamFirstByteMs ?? timeouts.firstByteMs };
  const ofSlowStreams = {
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
    connect: { timeout: timeouts.connectMs },
  });

  return {
    async post({ path, headers, body, signal, isStream = false, isSlowStream = false, onSent }) {
      signal.throwIfAborted();
      const times = isSlowStream ? ofSlowStreams : isStream ? ofStreams : timeouts;
      const exchange = new HttpExchange(base.host, times, signal, onSent);
      pool.dispatch(
        { method: 'POST', path: basePath + addQuery(path, base.search), headers: { ...headers }, body },
        exchange,
      );
      return await exchange.answer;
    },
    close: () => pool.close(),
  };
}

function addQuery(path: string, search: string): string {
  return path.includes('?') ? path + search.replace('?', '&') : path + search;
}
