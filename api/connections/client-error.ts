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

/** How long a refused connection is still read: if it were closed while the caller sends, the answer would be lost. */
const lingerMs = 1_000;

export interface ClientErrorOptions {
  readonly log: Logger;
  /** Undefined where the connection is not served. */
  readonly findConnection: (socket: Socket) => Connection | undefined;
  /** What lets the pages of an origin read the answer; of an empty one where it is not known. */
  readonly corsHeaders: (origin: string) => Readonly<Record<string, string>>;
  /** Of a head that came late because its connection was not read, from when it is read again. */
  readonly headersTimeoutMs: number;
}

/** What is answered, and what the access line says of it. */
interface Refusal {
  readonly error: AppError;
  readonly line: RequestLine | null;
  readonly reason: string;
  readonly origin: string;
}

/**
 * Answers what Node would answer by itself, with an empty body, or not at all: whatever its parser refuses, requests that
 * come too slowly, and CONNECT. The error goes to the request that it belongs to: those before it on the connection are
 * answered first, and an answer that has begun is cut off.
 */
export function answerClientErrors(server: Server, options: ClientErrorOptions): void {
  const refused = new WeakSet<Socket>();
  const answer = (socket: Socket, refusal: Refusal): void => {
    const connection = options.findConnection(socket);
    if (connection === undefined) socket.destroy();
    else refuse(connection, refusal, options).catch((failure: unknown) => socket.destroy(failure as Error));
  };
  const onClientError = (fault: ParserError, socket: Socket): void => {
    // The parser reports every further chunk of a connection that it has given up.
    if (refused.has(socket)) return;
    const connection = options.findConnection(socket);
    if (fault.code === 'ERR_HTTP_REQUEST_TIMEOUT' && connection !== undefined) {
      const retry = (): void => onClientError(fault, socket);
      if (waitForLate(connection, options.headersTimeoutMs, retry)) return;
    }
    refused.add(socket);
    const line = findRequestLine(fault);
    const error = describeParserError(fault, line);
    answer(socket, { error, line, reason: fault.message, origin: findOrigin(fault) });
  };
  server.on('clientError', onClientError);
  server.on('connect', ({ method = '', url = '', headers }: IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined);
    // Node has given the connection up: nobody else takes what comes, and its end comes behind that.
    socket.resume();
    const line = { method, path: withoutQuery(url) };
    answer(socket, { error: unknownMethod(method), line, reason: method, origin: headers.origin ?? '' });
  });
}

/**
 * Gives what is late more time where the connection was not read: Node times it no more once it has said so.
 * @param retry asks again, unless the head has come by then
 * @returns false where it has had its time
 */
function waitForLate(connection: Connection, headersTimeoutMs: number, retry: () => void): boolean {
  const { request, readAgainAtMs } = connection;
  if (readAgainAtMs === null) return false;
  // Once a body is read, it is timed by its own pace.
  if (request !== null && !request.complete) return true;
  const readMs = Math.max(0, performance.now() - readAgainAtMs);
  if (readMs >= headersTimeoutMs) return false;
  connection.headTimer = setTimeout(retry, headersTimeoutMs - readMs);
  return true;
}

async function refuse(connection: Connection, refusal: Refusal, options: ClientErrorOptions): Promise<void> {
  const startedAtMs = performance.now();
  const { socket, request } = connection;
  // Where a body was going on, the fault is in it; otherwise in what follows the last whole request.
  const faulty = request === null || request.complete ? null : request;
  while (socket.writable) {
    const { response } = connection;
    if (response === null) break;
    if (response.req === faulty) {
      answerResponse(socket, response, refusal.error);
      return;
    }
    await new Promise((resolve) => response.once('close', resolve));
  }
  // Either the faulty request has been answered already, or its caller has gone.
  if (faulty !== null || !socket.writable) socket.destroy();
  else answerConnection(socket, refusal, startedAtMs, options);
}

/** The request got as far as its handler, which has named it and logs it. */
function answerResponse(socket: Socket, response: ServerResponse, error: AppError): void {
  if (response.headersSent) {
    socket.destroy();
    return;
  }
  const { headers, body } = formatAnswer(
    error,
    String(response.getHeader('x-request-id') ?? createTimeOrderedId()),
  );
  response.writeHead(error.status, headers);
  keepOpenAfter(response);
  // It ends at once, so that a handler that is still at work adds nothing to it.
  response.end(body);
  closeLater(socket, () => {
    socket.destroy();
    // A request whose response has ended is not told that its connection closed, and what reads its body would wait on.
    response.req.destroy();
  });
}

/** There is no request yet: only the connection. */
function answerConnection(
  socket: Socket,
  { error, line, reason, origin }: Refusal,
  startedAtMs: number,
  { log, corsHeaders }: ClientErrorOptions,
): void {
  const { status } = error;
  const requestId = createTimeOrderedId();
  const { headers, body } = formatAnswer(error, requestId);
  const head = Object.entries({ date: new Date().toUTCString(), ...headers, ...corsHeaders(origin) })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`);
  socket.resume();
  closeLater(socket, () => socket.destroy());
  const { method = null, path = null } = line ?? {};
  logAccess(log, { requestId, method, path, status, startedAtMs, error, reason });
}

function formatAnswer(error: AppError, requestId: string): { headers: Record<string, string>; body: string } {
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

/** Reads on, and drops it, until the caller is through or the time is over. */
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
