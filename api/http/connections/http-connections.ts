// decision 0039
import cluster from 'node:cluster';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
  type RequestListener,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { explainListenError } from '../../../shared/platform/runtime/explain-listen-error.ts';
import { formatHttpOrigin } from '../../../shared/platform/runtime/format-http-origin.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { createThrottledWarning } from '../../../shared/platform/runtime/throttled-warning.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import { createConnection, type Connection } from './connection.ts';
import { ConnectionLimit, type ConnectionLimitOptions } from './connection-limit.ts';
import { type ClientErrorOptions, handleClientErrors } from './client-error.ts';
import { serveHalfClosed } from './half-close.ts';
import { PipelinedRequests } from './pipelined-requests.ts';
import { markOverLimit } from './over-limit-requests.ts';
import { StallGuard, type FindMemoryBlockers } from './stall-guard.ts';
import { allowHalfOpen } from './node-internals.ts';

/**
 * Time limit for the headers of a request, from the opening of the connection or, for later requests, from their first
 * byte.
 */
const defaultHeadersTimeoutMs = 20_000;
const maxCheckIntervalMs = 1_000;
/**
 * Maximum number of connections over the limit whose first request gets an error response. Further ones are closed
 * immediately.
 */
const maxOverLimit = 64;
/** Connections over the limit are closed if no request arrives within this time. */
const overLimitMs = 1_000;
/** How long a client may continue to send a body after the response before the connection is closed. */
const defaultUnwantedBodyMs = 10_000;

export type HandleRequest = (request: IncomingMessage, response: ServerResponse) => void;

export interface HttpConnectionsOptions {
  readonly keepAliveTimeoutMs: number;
  /**
   * Node's time limit for a whole request. `BodyPace` limits each body according to its length, so this must cover the
   * longest one.
   */
  readonly requestTimeoutMs: number;
  readonly limit: ConnectionLimitOptions;
  /**
   * Whether connections come from a proxy. Their addresses are then not those of clients, and all connections are
   * treated as one network.
   */
  readonly isProxied: boolean;
  readonly maxStallMs: number;
  /** How long `stop` leaves idle connections open, for requests that are on their way. */
  readonly idleGraceMs: number;
  readonly findMemoryBlockers: FindMemoryBlockers;
  /** Handles a request. Must call `checkOverLimit` before anything else. */
  readonly handle: HandleRequest;
  /** Returns the CORS headers for responses that are sent without the handler. */
  readonly corsHeaders: ClientErrorOptions['corsHeaders'];
  readonly log: Logger;
  /** For tests, like `unwantedBodyMs`. */
  readonly headersTimeoutMs?: number;
  readonly unwantedBodyMs?: number;
}

/** The HTTP server, and the connections it serves. */
export class HttpConnections {
  readonly #options: HttpConnectionsOptions;
  readonly #server: Server;
  readonly #connections = new Map<Socket, Connection>();
  readonly #limit: ConnectionLimit;
  readonly #pipelined = new PipelinedRequests();
  readonly #stallGuard: StallGuard;
  readonly #overLimit = new Set<Connection>();
  readonly #onResponseError: (error: Error) => void;
  // Throttled, because a flood of connections would cause a flood of warnings.
  readonly #warnFull: (message: string, fields: object) => void;
  readonly #warnNotAccepted: (message: string, fields: object) => void;
  #isStopping = false;

  constructor(options: HttpConnectionsOptions) {
    this.#options = options;
    const warn = (message: string, fields: object): void => options.log.warn(fields, message);
    this.#warnFull = createThrottledWarning(warn);
    this.#warnNotAccepted = createThrottledWarning(warn);
    this.#onResponseError = (error) => options.log.warn({ err: error }, 'response write failed');
    // Behind a proxy, all connections may belong to one network.
    const { max } = options.limit;
    this.#limit = new ConnectionLimit(options.isProxied ? { max, maxPerNetwork: max } : options.limit);
    this.#server = createServer(timeoutOptions(options));
    // With several processes on one port, one that refuses a connection is not spared it: it goes from process to process
    // until one of them takes it. So each takes all of its connections, and closes those over the limit.
    if (!cluster.isWorker) this.#server.maxConnections = max + maxOverLimit;
    this.#stallGuard = new StallGuard(options);
    this.#server.on('connection', (socket) => this.#open(socket));
    this.#server.on('drop', () => this.#logFull());
    const onRequest: HandleRequest = (request, response) => this.#handle(request, response);
    this.#server.on('request', onRequest);
    const { log, corsHeaders, headersTimeoutMs = defaultHeadersTimeoutMs } = options;
    handleAllRequests(this.#server, onRequest, {
      log,
      corsHeaders,
      headersTimeoutMs,
      findConnection: (socket) => this.#connections.get(socket),
    });
  }

  /** @returns the origin it listens on, without a trailing slash */
  async listen(host: string, port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      const onError = (error: Error): void => reject(explainListenError(host, port, error, 'PORT'));
      this.#server.once('error', onError);
      this.#server.listen(port, host, () => {
        this.#server.off('error', onError);
        resolve();
      });
    });
    // A failure to accept a connection, for example for lack of a file descriptor, must not affect anything else.
    this.#server.on('error', (err) => this.#warnNotAccepted('connection not accepted', { err }));
    const { port: actual } = this.#server.address() as AddressInfo;
    return formatHttpOrigin(host, actual);
  }

  /**
   * Stops accepting connections, and closes each after its response. A client may send a request on an idle one at the
   * same moment, or after a response that said that its connection stays open. So such a connection is closed after
   * `idleGraceMs`, or after the response to that request. Resolves when all are closed.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const closed = once(this.#server, 'close');
    // Node's own method would interrupt responses that have ended but are still in transit to slow clients.
    this.#server.closeIdleConnections = () => undefined;
    this.#server.close();
    for (const connection of this.#connections.values()) {
      const { response } = connection;
      if (response === null) this.#closeIfIdle(connection);
      else if (response.headersSent) response.once('close', () => this.#closeIfIdle(connection));
      else closeAfterResponse(connection, response);
    }
    await closed;
    this.#stallGuard.close();
  }

  #closeIfIdle(connection: Connection): void {
    const { idleGraceMs } = this.#options;
    const { socket } = connection;
    if (idleGraceMs === 0) {
      connection.isClosing = true;
      socket.destroySoon();
      return;
    }
    const timer = setTimeout(() => {
      if (connection.response === null) socket.destroySoon();
    }, idleGraceMs);
    socket.once('close', () => clearTimeout(timer));
  }

  #open(socket: Socket): void {
    const network = this.#options.isProxied ? '' : callerNetwork(socket.remoteAddress ?? '');
    const connection = createConnection(socket, network);
    this.#connections.set(socket, connection);
    this.#stallGuard.watch(connection);
    serveHalfClosed(connection);
    socket.once('close', () => {
      this.#connections.delete(socket);
      clearTimeout(connection.headTimer);
      this.#limit.close(connection);
      this.#overLimit.delete(connection);
    });
    if (this.#isStopping) this.#closeIfIdle(connection);
    if (this.#limit.open(connection)) return;
    this.#logFull();
    this.#allowErrorResponse(connection);
  }

  /** Keeps a connection over the limit open for a moment, so that its first request gets an error response. */
  #allowErrorResponse(connection: Connection): void {
    const { socket } = connection;
    if (this.#overLimit.size >= maxOverLimit) {
      socket.destroy();
      return;
    }
    this.#overLimit.add(connection);
    const timer = setTimeout(() => socket.destroy(), overLimitMs);
    socket.once('close', () => clearTimeout(timer));
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.get(request.socket);
    if (connection === undefined) return;
    connection.request = request;
    connection.readingResumedAtMs = null;
    connection.lastReceived = null;
    clearTimeout(connection.headTimer);
    const begin = (): void => this.#begin(connection, request, response);
    // A response without a socket waits behind an earlier one: Node assigns the socket to one response at a time.
    if (response.socket === null) this.#pipelined.wait(connection, request, response, begin);
    else begin();
  }

  #begin(connection: Connection, request: IncomingMessage, response: ServerResponse): void {
    if (response.destroyed || connection.isClosing) return;
    connection.response = response;
    if (this.#isStopping) closeAfterResponse(connection, response);
    // Without a listener, an error such as a write after the end would crash the process.
    response.on('error', this.#onResponseError);
    this.#limit.markBusy(connection);
    response.once('close', () => {
      if (connection.response !== response) return;
      connection.response = null;
      this.#limit.markIdle(connection);
      // Release the request. Otherwise an idle connection would retain its headers.
      if (request.complete && connection.request === request) connection.request = null;
      if (!request.complete) endUnlessComplete(connection, request, this.#options.unwantedBodyMs);
    });
    if (this.#overLimit.has(connection)) markOverLimit(request);
    this.#options.handle(request, response);
  }

  #logFull(): void {
    this.#warnFull('connection limit reached', { open: this.#limit.size, ...this.#options.limit });
  }
}

function timeoutOptions(options: HttpConnectionsOptions): ServerOptions {
  const { keepAliveTimeoutMs, requestTimeoutMs, headersTimeoutMs = defaultHeadersTimeoutMs } = options;
  return {
    keepAliveTimeout: keepAliveTimeoutMs,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: Math.min(maxCheckIntervalMs, headersTimeoutMs / 4),
  };
}

/** Requests that the client has already sent behind the current one are not handled. */
function closeAfterResponse(connection: Connection, response: ServerResponse): void {
  connection.isClosing = true;
  response.shouldKeepAlive = false;
}

/** Closes the connection if its client keeps sending the body long after the complete response. */
function endUnlessComplete(
  { socket }: Connection,
  request: IncomingMessage,
  afterMs = defaultUnwantedBodyMs,
): void {
  if (socket.destroyed) return;
  const timer = setTimeout(() => {
    socket.off('close', stop);
    if (!request.complete) socket.destroy();
  }, afterMs);
  const stop = (): void => clearTimeout(timer);
  timer.unref();
  socket.once('close', stop);
}

/**
 * Prevents Node from responding to, dropping or aborting requests by itself. Requests that it would reject get an error
 * in our format.
 */
function handleAllRequests(server: Server, handle: RequestListener, options: ClientErrorOptions): void {
  // `checkHead` checks the Host header and the number of headers. Node would silently drop headers beyond its limit.
  Object.assign(server, { requireHostHeader: false, maxHeadersCount: 0 });
  // The middleware that reads the body sends `100 Continue` when it is ready for the body.
  server.on('checkContinue', handle);
  server.on('checkExpectation', handle);
  handleClientErrors(server, options);
  // A client may close its side after sending its request. `serveHalfClosed` detects whether it has disconnected.
  allowHalfOpen(server);
}
