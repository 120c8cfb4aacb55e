import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { UnauthenticatedSockets } from '../unauthenticated-sockets.ts';
import type { BucketStore } from './bucket-store.ts';
import { chooseOperation } from './choose-operation.ts';
import { S3Error } from './errors.ts';
import { sendLateDocument } from './late-document.ts';
import type { LateBody, S3Response } from './operation.ts';
import { parseRequest } from './parse-request.ts';
import type { S3Request } from './parse-request.ts';
import { openPayload } from './payload.ts';
import type { Payload } from './payload.ts';
import { verifySignature } from './signature.ts';
import type { Authentication } from './signature.ts';
import { renderElement, renderText, xmlDeclaration } from './xml.ts';

export interface RequestEnvironment {
  store: BucketStore;
  now: () => number;
  credentials: { accessKeyId: string; secretAccessKey: string; region?: string | undefined };
  maxObjectBytes: number;
  warn: (line: string) => void;
  unauthenticated: UnauthenticatedSockets;
  stopping: AbortSignal;
  /** How often a client that waits for a document gets white space. */
  whiteSpaceIntervalMs: number;
}

// How much of a rejected upload is still read, so that clients that read only after writing get the response.
const maxDrainBytes = 16 * 1024 * 1024;
const maxDrainMs = 5000;

/** Serves one request. With `expectsContinue`, the client waits for a 100 before it sends its body. */
export async function handleRequest(
  environment: RequestEnvironment,
  message: IncomingMessage,
  response: ServerResponse,
  expectsContinue: boolean,
): Promise<void> {
  if (environment.unauthenticated.isRejected(message.socket)) return;
  const requestId = randomBytes(8).toString('hex').toUpperCase();
  const nowMs = environment.now();
  response.setHeader('x-amz-request-id', requestId);
  // Clients that were rejected because of their clock correct it with this header, so it must use the same clock.
  response.setHeader('date', new Date(nowMs).toUTCString());
  let isBodyIncoming = !expectsContinue;
  const openBody = (
    headers: ReadonlyMap<string, string>,
    authentication: Authentication,
    maxBytes: number,
  ): Payload => {
    // Keep the body open if reading stops early, because destroying it would close the connection before the response.
    const source = message.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    const payload = openPayload(source, headers, authentication, maxBytes);
    if (expectsContinue) response.writeContinue();
    isBodyIncoming = true;
    return payload;
  };
  let path = message.url ?? '';
  let isAuthenticated = false;
  try {
    const request = parseRequest(message);
    path = request.rawPath;
    const authentication = verifySignature(request, { ...environment.credentials, nowMs });
    isAuthenticated = true;
    environment.unauthenticated.release(message.socket);
    const operation = chooseOperation(request);
    const requestHeaders = collectHeaders(request);
    const result = await operation({
      request,
      headers: requestHeaders,
      store: environment.store,
      nowMs,
      openPayload: (maxBytes, headers = requestHeaders) => openBody(headers, authentication, maxBytes),
      maxObjectBytes: environment.maxObjectBytes,
      stopping: environment.stopping,
    });
    const { body } = result;
    if (typeof body === 'object' && 'later' in body) {
      await sendLateDocument(response, result, body.later, {
        intervalMs: environment.whiteSpaceIntervalMs,
        renderError: (error) => {
          const s3Error = toS3Error(error);
          if (s3Error.status === 500) environment.warn(`embedded S3: ${path}: ${String(error)}`);
          return renderError(s3Error, { path, requestId });
        },
      });
    } else {
      await sendResponse(response, result, body);
    }
  } catch (error) {
    // A disconnected client cannot get a response, and its unfinished upload was not stored.
    if (response.destroyed || message.errored !== null) return;
    const s3Error = toS3Error(error);
    if (s3Error.status === 500) environment.warn(`embedded S3: ${path}: ${String(error)}`);
    if (response.headersSent) {
      // Closing the connection is the only remaining way to signal that the body is incomplete.
      response.destroy();
      return;
    }
    if (!isAuthenticated) environment.unauthenticated.markRejected(message.socket);
    const isRejected = environment.unauthenticated.isRejected(message.socket);
    await sendError(message, response, s3Error, { path, requestId, isBodyIncoming, isRejected });
  }
}

// Presigning moves a request's x-amz headers into the query, where they mean the same.
function collectHeaders(request: S3Request): ReadonlyMap<string, string> {
  const isPresigned = request.query.some(([name]) => name === 'X-Amz-Signature');
  if (!isPresigned) return request.headers;
  const headers = new Map(request.headers);
  for (const [name, value] of request.query) {
    const header = name.toLowerCase();
    if (header.startsWith('x-amz-') && !headers.has(header)) headers.set(header, value);
  }
  return headers;
}

function toS3Error(error: unknown): S3Error {
  return error instanceof S3Error ? error : new S3Error('InternalError', { cause: error });
}

async function sendResponse(
  response: ServerResponse,
  { status, headers = {} }: S3Response,
  body: Exclude<S3Response['body'], LateBody>,
): Promise<void> {
  if (body === undefined) {
    // Send a length of zero explicitly. Otherwise clients would wait for chunks. A HEAD response keeps its length.
    const hasNoLength = status === 204 || status === 304;
    response.writeHead(status, hasNoLength ? headers : { 'content-length': '0', ...headers }).end();
  } else if (typeof body === 'string') {
    const bytes = Buffer.from(body);
    response
      .writeHead(status, {
        'content-type': 'application/xml',
        'content-length': String(bytes.length),
        ...headers,
      })
      .end(bytes);
  } else {
    response.writeHead(status, headers);
    await pipeline(body.stream, response);
  }
}

interface ErrorPlace {
  readonly path: string;
  readonly requestId: string;
}

interface ErrorContext extends ErrorPlace {
  readonly isBodyIncoming: boolean;
  readonly isRejected: boolean;
}

function renderError(error: S3Error, { path, requestId }: ErrorPlace): string {
  return renderElement(
    'Error',
    renderText('Code', error.code),
    renderText('Message', error.message),
    ...Object.entries(error.details).map(([name, value]) => renderText(name, value)),
    renderText('Resource', path),
    renderText('RequestId', requestId),
  );
}

async function sendError(
  message: IncomingMessage,
  response: ServerResponse,
  error: S3Error,
  { path, requestId, isBodyIncoming, isRejected }: ErrorContext,
): Promise<void> {
  const bytes = Buffer.from(`${xmlDeclaration}\n${renderError(error, { path, requestId })}`);
  const isBodyPending = !message.complete && hasBody(message);
  // Without this, Node would close the connection gracefully, and meanwhile read and parse the bytes after this
  // request.
  if (isRejected) response.once('finish', () => message.socket.destroy());
  response.writeHead(error.status, {
    'content-type': 'application/xml',
    'content-length': String(bytes.length),
    ...error.headers,
    ...(isBodyPending || isRejected ? { connection: 'close' } : {}),
  });
  if (isBodyPending && isBodyIncoming && message.method !== 'HEAD') {
    // Once written, the response is complete for the client. Ending it earlier would reset the connection.
    response.write(bytes);
    await drain(message);
    response.end();
  } else {
    response.end(bytes);
  }
}

/**
 * Returns whether the request has a body. `message.complete` is not sufficient, because an error response may be sent
 * before Node has noticed that a request without a body is complete.
 */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

async function drain(message: IncomingMessage): Promise<void> {
  const timer = setTimeout(() => message.destroy(), maxDrainMs);
  try {
    let drainedBytes = 0;
    for await (const chunk of message as AsyncIterable<Buffer>) {
      drainedBytes += chunk.length;
      if (drainedBytes > maxDrainBytes) break;
    }
  } catch {
    // The client disconnected or timed out, so the remaining bytes are not needed.
  } finally {
    clearTimeout(timer);
  }
}
