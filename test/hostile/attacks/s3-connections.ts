import {
  closeSockets,
  countClosed,
  holdDripping,
  openSockets,
  sendUnread,
} from '../../support/hostile-sockets.ts';

export interface S3Target {
  readonly s3Endpoint: string;
}

const requestLine = 'PUT /model-gateway/x HTTP/1.1\r\nHost: s3\r\n';

/** Random bytes, bodies announced as 2 GB, unterminated headers: all without a signature, and incomplete. */
export async function sendUnsignedRequests({
  s3Endpoint,
}: S3Target): Promise<{ opened: number; closed: number }> {
  const filler = 'x'.repeat(65_536);
  const requests = [
    `\0\x01\x02\xff${filler}`,
    `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${filler}`,
    `${requestLine}Content-Length: 2147483648\r\n\r\n${filler}`,
    `${requestLine}Content-Length: 99999999999999999999\r\n\r\n${filler}`,
    `${requestLine}Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n${filler}`,
    `${requestLine}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n${filler}`,
    `${requestLine}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${filler}`,
    `${requestLine}X-Long: ${filler}`,
    `${requestLine}${'X-Many: 1\r\n'.repeat(5_000)}`,
    `${requestLine}Authorization: AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=${filler.slice(0, 9_000)}, Signature=0\r\n\r\n`,
    `GET /${filler} HTTP/1.1\r\nHost: s3\r\n\r\n`,
    'GET /model-gateway?list-type=2 HTTP/1.1\r\nHost: s3\r\n\r\n',
  ].flatMap((request) => Array.from({ length: 10 }, () => Buffer.from(request, 'latin1')));
  const sockets = await openSockets(s3Endpoint, requests.length);
  for (const [i, request] of requests.entries()) sockets[i]!.write(request);
  const closed = await countClosed(sockets);
  closeSockets(sockets);
  return { opened: sockets.length, closed };
}

/**
 * Keeps connections open that send nothing, or a header byte at intervals, while `whileHeld` runs.
 * @returns the number of connections still open at the end
 */
export async function holdS3Connections({
  s3Endpoint,
  whileHeld,
}: S3Target & { whileHeld: () => Promise<void> }): Promise<number> {
  const sockets = await openSockets(s3Endpoint, 600);
  for (const [i, socket] of sockets.entries()) {
    socket.resume();
    if (i % 2 === 0) socket.write(requestLine);
  }
  return await holdDripping(sockets, { byte: 'x', isDripping: (i) => i % 2 === 0 }, whileHeld);
}

/** Pipelines very many requests without a signature, and reads the responses only at the end. */
export async function pipelineUnsignedRequests({
  s3Endpoint,
}: S3Target): Promise<{ responses: number; opened: number; closed: number }> {
  const sockets = await openSockets(s3Endpoint, 8);
  const request = 'GET /model-gateway/x HTTP/1.1\r\nHost: s3\r\n\r\n';
  const each = 10_000;
  await Promise.all(sockets.map((socket) => sendUnread(socket, Buffer.from(request.repeat(each)))));
  let responses = 0;
  for (const socket of sockets) {
    socket.on('data', (text: string) => {
      responses += text.split('HTTP/1.1 ').length - 1;
    });
  }
  const closed = await countClosed(sockets);
  closeSockets(sockets);
  return { responses, opened: sockets.length, closed };
}
