import type { Readable } from 'node:stream';

import { Pool } from 'undici';

import type { HttpHeaders } from './http-failure.ts';
import { HttpExchange } from './http-exchange.ts';

export interface HttpTimeouts {
  /** Until the TCP and TLS handshakes are done; kept by undici's clock, which may be up to a second late. */
  readonly connectMs: number;
  /** From the moment the request is written until the first byte of the answer's body. */
  readonly firstByteMs: number;
  /** The same for answers that are streamed; `firstByteMs` unless given. */
  readonly streamFirstByteMs?: number;
  /** Silence of the vendor within a body, while we are ready to read. */
  readonly betweenChunksMs: number;
  /** The whole call, waiting for a free connection included. */
  readonly totalMs: number;
}

export const DEFAULT_HTTP_TIMEOUTS: HttpTimeouts = {
  connectMs: 10_000,
  firstByteMs: 120_000,
  betweenChunksMs: 60_000,
  totalMs: 600_000,
};

export interface HttpClientOptions {
  /** With its path, e.g. `https://api.example.com/v1`; a query is added to every call. */
  readonly baseUrl: string;
  readonly timeouts?: HttpTimeouts;
  /** The most sockets held open; further calls wait for one. */
  readonly connections?: number;
}

export interface HttpPost {
  /** Added to the base URL's path; begins with a slash, and may end with a query of the call's own. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What comes piece by piece has its `content-length` among the headers. */
  readonly body: Buffer | string | Readable;
  readonly signal: AbortSignal;
  readonly isStream?: boolean;
  /** A stream whose parts are images: the pause before each of them may be as long as before a whole answer. */
  readonly isSlowStream?: boolean;
  /** Called when the request is written to a connection. */
  readonly onSent?: (() => void) | undefined;
}

/**
 * An answer whose head has come. Its body has one reader, by one of these ways. All reject with UpstreamError, or
 * with the signal's reason once that has fired.
 */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: HttpHeaders;
  /** The whole body; a longer one is an UpstreamError, and no more than that is ever held. */
  readAll(maxBytes: number): Promise<Buffer>;
  /**
   * What `read` makes of the whole body, which is there only until then: nothing that it returns may refer to it. For
   * bodies that are large and many.
   */
  readLarge<T>(maxBytes: number, read: (body: Buffer) => T): Promise<T>;
  /** At most that many first bytes; the rest is let go. */
  readStart(maxBytes: number): Promise<Buffer>;
  /** Chunk by chunk: null is the end. Reading from the socket stops while more than a little is waiting here. */
  next(): Promise<Buffer | null>;
  /**
   * Nothing more of the body is wanted. A body that ends by itself within a moment leaves its connection usable;
   * another is cut off. Safe to call at any time, also after the end.
   */
  release(): void;
  /** Cuts the call off at once. Safe to call at any time. */
  abort(): void;
}

export interface HttpClient {
  /** Resolves when the answer's head has come, whatever its status. */
  post(request: HttpPost): Promise<HttpAnswer>;
  /** Waits for the calls under way, then closes the sockets. */
  close(): Promise<void>;
}

const DEFAULT_CONNECTIONS = 256;

/**
 * One pool of kept-alive HTTP/1.1 connections to one server, one call a connection at a time. Redirects are not
 * followed: a vendor's API has none, and a key must not travel to another host.
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
    // One request a connection at a time: undici's name for "pipelining off" that still keeps connections alive.
    pipelining: 1,
    // The exchange times the answer itself: undici's own timers are half a second coarse.
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
