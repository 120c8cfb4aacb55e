import { maxHeaderSize } from 'node:http';
import { AppError } from '../../../shared/contract/errors.ts';
import { malformed, unknownMethod, unknownVersion } from './http-errors.ts';

/** Fields that Node's parser adds to its errors. */
export interface ParserError extends Error {
  readonly code?: string;
  readonly reason?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
}

export interface RequestLine {
  readonly method: string;
  /** Without its query, which may contain a key. */
  readonly path: string;
}

/** Converts a parser error to an API error, with the status that HTTP defines and the closest of our error codes. */
export function describeParserError({ code, reason }: ParserError, line: RequestLine | null): AppError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new AppError('payload_too_large', {
        status: 431,
        message: `The request line and headers are larger than ${maxHeaderSize / 1024} KB. Send fewer or shorter headers.`,
      });
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new AppError('payload_too_large', {
        message: 'The chunk extensions of the body are too long. Send chunks without extensions.',
      });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new AppError('deadline_exceeded', {
        status: 408,
        message: 'The request was not received in time. Send the whole request again.',
      });
    case 'HPE_INVALID_EOF_STATE':
      return malformed(
        'The connection was closed before the request was complete. Send the whole request again.',
      );
    case 'HPE_INVALID_VERSION':
    case 'HPE_PAUSED_H2_UPGRADE':
      return unknownVersion();
    case 'HPE_INVALID_METHOD':
      if (line !== null) return unknownMethod(line.method);
      return malformed(
        'This is not an HTTP request. Use an HTTP/1.1 client, and use http:// unless a proxy terminates TLS.',
      );
    default:
      return malformed(
        `This is not a valid HTTP request: ${reason ?? 'it cannot be parsed'}. Check the client or proxy.`,
      );
  }
}

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP\//;
const maxLineBytes = 4096;

/** Finds the line at the parser's position, if it is a request line. */
export function findRequestLine({ rawPacket, bytesParsed = 0 }: ParserError): RequestLine | null {
  if (rawPacket === undefined) return null;
  const start = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf('\n', bytesParsed - 1) + 1;
  const match = requestLine.exec(rawPacket.toString('latin1', start, start + maxLineBytes));
  return match === null ? null : { method: match[1]!, path: withoutQuery(match[2]!) };
}

export function withoutQuery(target: string): string {
  const end = target.search(/[?#]/);
  return end < 0 ? target : target.slice(0, end);
}

const originLine = /^origin:[ \t]*(\S+)/im;

/** The Origin header in the parser's last packet; empty if there is none. */
export function findOrigin({ rawPacket }: ParserError): string {
  return (rawPacket === undefined ? null : originLine.exec(rawPacket.toString('latin1')))?.[1] ?? '';
}
