import {
  maxHeaderSize,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import { AppError } from '../../shared/contract/errors.ts';
import { shorten } from '../../shared/runtime/shorten.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { createTimeOrderedId } from '../../shared/runtime/time-ordered-id.ts';
import { errorHeaders, presentError } from '../present/error-body.ts';

/** How long a refused connection is still read: closing it under a caller who sends would lose the answer on its way. */
const lingerMs = 1_000;

/** What Node's parser adds to its errors. */
interface ParserError extends Error {
  readonly code?: string;
  readonly reason?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

/** What Node's server keeps with a connection: the response whose turn it is, and the request that is being parsed. */
interface HttpSocket extends Socket {
  readonly _httpMessage?: (ServerResponse & { readonly req: IncomingMessage }) | null;
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null;
}

interface RequestLine {
  readonly method: string;
  readonly path: string;
}

/**
 * Answers what Node would answer by itself, with an empty body, or not at all: whatever its parser refuses, requests that
 * come too slowly, and CONNECT. The error goes to the request that it belongs to: those before it on the connection are
 * answered first, and an answer that has begun is cut off.
 */
export function answerClientErrors(server: Server, log: Logger): void {
  const refused = new WeakSet<Socket>();
  const answer = (socket: HttpSocket, error: AppError, refusal: Refusal): void => {
    refuse(socket, error, refusal).catch((failure: unknown) => socket.destroy(failure as Error));
  };
  server.on('clientError', (fault: ParserError, socket: HttpSocket) => {
    // The parser reports every further chunk of a connection that it has given up.
    if (refused.has(socket)) return;
    refused.add(socket);
    const line = findRequestLine(fault);
    answer(socket, toAppError(fault, line), { log, line, reason: fault.message });
  });
  server.on('connect', ({ method = '', url = '' }: IncomingMessage, socket: HttpSocket) => {
    socket.on('error', () => undefined);
    answer(socket, unknownMethod(method), { log, line: { method, path: url }, reason: 'CONNECT' });
  });
}

interface Refusal {
  readonly log: Logger;
  readonly line: RequestLine | null;
  readonly reason: string;
}

async function refuse(socket: HttpSocket, error: AppError, refusal: Refusal): Promise<void> {
  // Where a body was going on, the fault is in it; otherwise in what follows the last whole request.
  const current = socket.parser?.incoming;
  const faulty = current === undefined || current === null || current.complete ? null : current;
  while (socket.writable) {
    const response = socket._httpMessage ?? null;
    if (response === null) break;
    if (response.req === faulty) {
      answerResponse(socket, response, error);
      return;
    }
    await new Promise((resolve) => response.once('close', resolve));
  }
  // A request whose answer has left already, or a caller who has gone: there is nothing to say, and nobody to hear it.
  if (faulty !== null || !socket.writable) socket.destroy();
  else answerConnection(socket, error, refusal);
}

/** The request got as far as its handler, which has named it and logs it. */
function answerResponse(socket: Socket, response: ServerResponse, error: AppError): void {
  if (response.headersSent) {
    socket.destroy();
    return;
  }
  const { status, headers, body } = formatAnswer(
    error,
    String(response.getHeader('x-request-id') ?? createTimeOrderedId()),
  );
  response.writeHead(status, headers);
  // Node would close the connection with the response's end, under a caller who still sends.
  Object.assign(response, { _last: false });
  // It ends at once, so that a handler that is still at work adds nothing to it.
  response.end(body);
  closeLater(socket, () => {
    socket.destroy();
    // A request whose response has ended does not hear of its connection's end; whoever reads its body waits for that.
    response.req.destroy();
  });
}

/** There is no request yet: only the connection. */
function answerConnection(socket: Socket, error: AppError, { log, line, reason }: Refusal): void {
  const requestId = createTimeOrderedId();
  const { status, headers, body } = formatAnswer(error, requestId);
  const head = Object.entries({ date: new Date().toUTCString(), ...headers })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`);
  socket.resume();
  closeLater(socket, () => socket.destroy());
  const { method = null, path = null } = line ?? {};
  log.info({ requestId, method, path: path === null ? null : shorten(path), status, reason }, 'request');
}

function formatAnswer(
  error: AppError,
  requestId: string,
): { status: number; headers: Record<string, string>; body: string } {
  const body = JSON.stringify(presentError(error));
  const headers = {
    ...errorHeaders(error),
    'x-request-id': requestId,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  return { status: error.status, headers, body };
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

const unknownMethod = (method: string): AppError =>
  new AppError('method_not_allowed', {
    status: 501,
    message: `The method ${shorten(method)} is not known here. Use GET, POST or PUT, as /docs says of each address.`,
  });

/** The status is HTTP's; the code is the nearest of the closed set. */
function toAppError({ code, reason }: ParserError, line: RequestLine | null): AppError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('payload_too_large', {
        status: 431,
        message: `The request line and the headers are larger than ${maxHeaderSize / 1024} KB. Send fewer or shorter ones.`,
      });
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new AppError('payload_too_large', {
        message: 'The extensions of the body’s chunks are too long. Send chunks without extensions.',
      });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('deadline_exceeded', {
        status: 408,
        message: 'The request did not arrive in time. Send it again, whole.',
      });
    case 'HPE_INVALID_EOF_STATE':
      return malformed('The connection was closed before the request had ended. Send it again, whole.');
    case 'HPE_INVALID_VERSION':
    case 'HPE_PAUSED_H2_UPGRADE':
      return malformed('This version of HTTP is not spoken here. Use HTTP/1.1.', 505);
    case 'HPE_INVALID_METHOD':
      if (line !== null) return unknownMethod(line.method);
      return malformed(
        'This is no HTTP request. Use an HTTP/1.1 client, and http:// where no proxy speaks TLS.',
      );
    default:
      return malformed(
        `This is not a valid HTTP request: ${reason ?? 'it cannot be read'}. Check the client or proxy.`,
      );
  }
}

const malformed = (message: string, status = 400): AppError =>
  new AppError('validation_failed', { status, message });

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\//;
const maxLineBytes = 4096;

/** The line that the parser was at, where it is one of a request. */
function findRequestLine({ rawPacket, bytesParsed = 0 }: ParserError): RequestLine | null {
  if (rawPacket === undefined) return null;
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf('\n', bytesParsed - 1) + 1;
  const match = requestLine.exec(rawPacket.toString('latin1', start, start + maxLineBytes));
  return match === null ? null : { method: match[1]!, path: match[2]! };
}
