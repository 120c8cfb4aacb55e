// decision 0040
import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { Logger } from '../../../shared/platform/runtime/logger.ts';
import { createTimeOrderedId } from '../../../shared/platform/runtime/time-ordered-id.ts';
import { findCallerAddress } from '../callers/caller-address.ts';
import { logAccess } from '../responses/access-line.ts';
import { presentError } from '../../../shared/responses/error-body.ts';
import { errorHeaders } from '../responses/error-headers.ts';
import type { Connection } from './connection.ts';
import { unknownMethod } from './http-errors.ts';
import { keepOpenAfter } from './node-internals.ts';
import {
  describeParserError,
  findOrigin,
  findRequestLine,
  withoutQuery,
  type ParserError,
  type RequestLine,
} from './parser-errors.ts';

/**
 * How long to keep reading a connection after an error response. Closing it while the client is sending would lose the
 * response.
 */
const lingerMs = 1_000;

export interface ClientErrorOptions {
  readonly log: Logger;
  /** Returns undefined if the connection was not accepted, because the server is stopping, or has already closed. */
  readonly findConnection: (socket: Socket) => Connection | undefined;
  /** Returns the CORS headers for an origin. The origin is an empty string if it is unknown. */
  readonly corsHeaders: (origin: string) => Readonly<Record<string, string>>;
  /**
   * Time limit for a request head after a pause. If this process paused reading from the connection, the time starts
   * when reading resumes.
   */
  readonly headersTimeoutMs: number;
}

/** The error to send, and the details for the access log. */
interface ErrorReport {
  readonly error: AppError;
  readonly line: RequestLine | null;
  readonly reason: string;
  readonly origin: string;
}

/**
 * Handles errors for which Node would send an empty body or nothing at all: parser errors, requests that arrive too
 * slowly, and CONNECT. The error is the response to the request that caused it, so earlier requests of the connection
 * get their responses first. If the response to the failed request has already started, the connection is closed.
 */
export function handleClientErrors(server: Server, options: ClientErrorOptions): void {
  const failedSockets = new WeakSet<Socket>();
  const respond = (socket: Socket, report: ErrorReport): void => {
    const connection = options.findConnection(socket);
    if (connection === undefined) socket.destroy();
    else
      respondWithError(connection, report, options).catch((failure: unknown) =>
        socket.destroy(failure as Error),
      );
  };
  const onClientError = (parserError: ParserError, socket: Socket): void => {
    // After an error, the parser reports every further chunk of the connection as another error.
    if (failedSockets.has(socket)) return;
    const connection = options.findConnection(socket);
    if (parserError.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection !== undefined) {
      const retry = (): void => onClientError(parserError, socket);
      if (extendTimeLimit(connection, options.headersTimeoutMs, retry)) return;
    }
    failedSockets.add(socket);
    const line = findRequestLine(parserError);
    const error = describeParserError(parserError, line);
    respond(socket, { error, line, reason: parserError.message, origin: findOrigin(parserError) });
  };
  server.on('clientError', onClientError);
  server.on('connect', ({ method = '', url = '', headers }: IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined);
    // Node no longer reads the connection after CONNECT. Read it here, because a disconnect is noticed only while
    // reading.
    socket.resume();
    const line = { method, path: withoutQuery(url) };
    respond(socket, { error: unknownMethod(method), line, reason: method, origin: headers.origin ?? '' });
  });
}

/**
 * Extends the time limit of a request head if this process paused reading from its connection. Needs its own timer,
 * because Node reports a late request only once.
 * @param retry checks again, unless the head arrives first
 * @returns false if the time is up
 */
function extendTimeLimit(connection: Connection, headersTimeoutMs: number, retry: () => void): boolean {
  const { request, readingResumedAtMs } = connection;
  if (readingResumedAtMs === null) return false;
  // A body that is being read is timed by `BodyPace`.
  if (request !== null && !request.complete) return true;
  const readMs = Math.max(0, performance.now() - readingResumedAtMs);
  if (readMs >= headersTimeoutMs) return false;
  connection.headTimer = setTimeout(retry, headersTimeoutMs - readMs);
  return true;
}

async function respondWithError(
  connection: Connection,
  report: ErrorReport,
  options: ClientErrorOptions,
): Promise<void> {
  const startedAtMs = performance.now();
  const { socket, request } = connection;
  // If a body was being received, the error is in that body and belongs to its request. Otherwise the error is in the
  // data after the last complete request.
  const failed = request === null || request.complete ? null : request;
  while (socket.writable) {
    const { response } = connection;
    if (response === null) break;
    if (response.req === failed) {
      sendOnResponse(socket, response, report.error);
      return;
    }
    await new Promise((resolve) => response.once('close', resolve));
  }
  // Either the failed request already has its response, or its client has disconnected.
  if (failed !== null || !socket.writable) socket.destroy();
  else sendOnConnection(socket, report, startedAtMs, options);
}

/**
 * Sends the error as the response to a request that reached its handler, which has assigned the request id and logs the
 * request.
 */
function sendOnResponse(socket: Socket, response: ServerResponse, error: AppError): void {
  if (response.headersSent) {
    socket.destroy();
    return;
  }
  const { headers, body } = formatError(
    error,
    String(response.getHeader('x-request-id') ?? createTimeOrderedId()),
  );
  response.writeHead(error.status, headers);
  keepOpenAfter(response);
  // End the response immediately, so that a handler that is still running cannot add to it.
  response.end(body);
  closeLater(socket, () => {
    socket.destroy();
    // A request is not notified of the close once its response has ended, so its body's reader would wait forever.
    response.req.destroy();
  });
}

/** Responds on a connection without a parsed request. */
function sendOnConnection(
  socket: Socket,
  { error, line, reason, origin }: ErrorReport,
  startedAtMs: number,
  { log, corsHeaders }: ClientErrorOptions,
): void {
  const { status } = error;
  const requestId = createTimeOrderedId();
  const { headers, body } = formatError(error, requestId);
  const head = Object.entries({ date: new Date().toUTCString(), ...headers, ...corsHeaders(origin) })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`);
  socket.resume();
  closeLater(socket, () => socket.destroy());
  const { method = null, path = null } = line ?? {};
  const durationMs = performance.now() - startedAtMs;
  const response = { status, isWhole: true, error };
  const address = findCallerAddress(socket.remoteAddress);
  logAccess(log, { requestId, method, path, response, durationMs, reason, address });
}

function formatError(error: AppError, requestId: string): { headers: Record<string, string>; body: string } {
  const body = JSON.stringify(presentError(error));
  const headers = {
    ...errorHeaders(error),
    'x-request-id': requestId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  return { headers, body };
}

/** Discards further input until the client is done or the time is up, then closes. */
function closeLater(socket: Socket, close: () => void): void {
  const done = (): void => {
    clearTimeout(timer);
    socket.off('end', done).off('close', done);
    close();
  };
  const timer = setTimeout(done, lingerMs);
  socket.once('end', done).once('close', done);
  if (socket.readableEnded) done();
}
