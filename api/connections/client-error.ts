import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { AppError } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { createTimeOrderedId } from '../../shared/runtime/time-ordered-id.ts';
import { logAccess } from '../present/access-line.ts';
import { errorHeaders, presentError } from '../present/error-body.ts';
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

/** How long to keep reading a refused connection. Closing it while the client is sending would lose the response. */
const lingerMs = 1_000;

export interface ClientErrorOptions {
  readonly log: Logger;
  /** Undefined if the connection is not served. */
  readonly findConnection: (socket: Socket) => Connection | undefined;
  /** CORS headers for an origin, which is empty if unknown. */
  readonly corsHeaders: (origin: string) => Readonly<Record<string, string>>;
  /** Time limit for a head that is late because its connection was not read, counted from when reading resumes. */
  readonly headersTimeoutMs: number;
}

/** The error to send, and the details for the access log. */
interface Refusal {
  readonly error: AppError;
  readonly line: RequestLine | null;
  readonly reason: string;
  readonly origin: string;
}

/**
 * Handles errors for which Node would send an empty body or nothing at all: parser errors, requests that arrive too
 * slowly, and CONNECT. The error goes to the request that caused it: earlier requests of the connection get their
 * responses first, and if that request's response has started, it is cut off.
 */
export function handleClientErrors(server: Server, options: ClientErrorOptions): void {
  const refused = new WeakSet<Socket>();
  const respond = (socket: Socket, refusal: Refusal): void => {
    const connection = options.findConnection(socket);
    if (connection === undefined) socket.destroy();
    else refuse(connection, refusal, options).catch((failure: unknown) => socket.destroy(failure as Error));
  };
  const onClientError = (parserError: ParserError, socket: Socket): void => {
    // After an error, the parser reports every further chunk of the connection as another error.
    if (refused.has(socket)) return;
    const connection = options.findConnection(socket);
    if (parserError.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection !== undefined) {
      const retry = (): void => onClientError(parserError, socket);
      if (waitForLate(connection, options.headersTimeoutMs, retry)) return;
    }
    refused.add(socket);
    const line = findRequestLine(parserError);
    const error = describeParserError(parserError, line);
    respond(socket, { error, line, reason: parserError.message, origin: findOrigin(parserError) });
  };
  server.on('clientError', onClientError);
  server.on('connect', ({ method = '', url = '', headers }: IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined);
    // Node no longer reads the connection. Unless its data is read, its end is not noticed.
    socket.resume();
    const line = { method, path: withoutQuery(url) };
    respond(socket, { error: unknownMethod(method), line, reason: method, origin: headers.origin ?? '' });
  });
}

/**
 * Extends the time if reading of the connection was paused. Node stops timing it after the first report.
 * @param retry checks again, unless the head arrives first
 * @returns false if the time is up
 */
function waitForLate(connection: Connection, headersTimeoutMs: number, retry: () => void): boolean {
  const { request, readAgainAtMs } = connection;
  if (readAgainAtMs === null) return false;
  // A body that is being read is timed by `BodyPace`.
  if (request !== null && !request.complete) return true;
  const readMs = Math.max(0, performance.now() - readAgainAtMs);
  if (readMs >= headersTimeoutMs) return false;
  connection.headTimer = setTimeout(retry, headersTimeoutMs - readMs);
  return true;
}

async function refuse(connection: Connection, refusal: Refusal, options: ClientErrorOptions): Promise<void> {
  const startedAtMs = performance.now();
  const { socket, request } = connection;
  // If a body was being received, the error is in it. Otherwise it is in the data after the last complete request.
  const failed = request === null || request.complete ? null : request;
  while (socket.writable) {
    const { response } = connection;
    if (response === null) break;
    if (response.req === failed) {
      sendOnResponse(socket, response, refusal.error);
      return;
    }
    await new Promise((resolve) => response.once('close', resolve));
  }
  // Either the failed request already has its response, or its client has disconnected.
  if (failed !== null || !socket.writable) socket.destroy();
  else sendOnConnection(socket, refusal, startedAtMs, options);
}

/** Sends the error as the response of a request that reached its handler, which has assigned its id and logs it. */
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
  { error, line, reason, origin }: Refusal,
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
  logAccess(log, { requestId, method, path, status, startedAtMs, error, reason });
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
