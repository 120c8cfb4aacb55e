import { maxHeaderSize } from 'node:http';
import { openRaw, sendRaw } from '../../support/raw-caller.ts';
import type { RawResponse } from '../../support/raw-response.ts';
import type { Target } from './target.ts';

const host = 'host: gateway\r\n';
const chunked = (chunks: string): string =>
  `POST /v1/embeddings HTTP/1.1\r\n${host}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunks}`;

/** Bytes that are not a valid or not an acceptable request, keyed by the problem. */
const malformed: Readonly<Record<string, string | Buffer>> = {
  garbage: 'hello\r\n\r\n',
  'a TLS handshake': Buffer.from('16030100a5010000a10303', 'hex'),
  'zero bytes': Buffer.alloc(512),
  'HTTP/2 with prior knowledge': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'an unknown version': `GET /v1/models HTTP/3.7\r\n${host}\r\n`,
  'no version': 'GET /v1/models\r\n\r\n',
  'HTTP/2 in the clear': `GET /v1/models HTTP/2.0\r\n${host}\r\n`,
  'an unknown method': `BREW /v1/models HTTP/1.1\r\n${host}\r\n`,
  CONNECT: 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n',
  'a header without a colon': `GET /v1/models HTTP/1.1\r\n${host}nonsense\r\n\r\n`,
  'a header with a control character': `GET /v1/models HTTP/1.1\r\n${host}x: a\0b\r\n\r\n`,
  'headers that are too large': `GET /v1/models HTTP/1.1\r\n${host}x: ${'a'.repeat(maxHeaderSize)}\r\n\r\n`,
  'too many headers': `GET /v1/models HTTP/1.1\r\n${host}${'a:\r\n'.repeat(1_200)}\r\n`,
  'no Host': 'GET /v1/models HTTP/1.1\r\n\r\n',
  'two Hosts': `GET /v1/models HTTP/1.1\r\n${host}Host: other\r\nconnection: close\r\n\r\n`,
  'an invalid Host': 'GET /v1/models HTTP/1.1\r\nhost: a b<c>\r\nconnection: close\r\n\r\n',
  'an unknown expectation': `GET /v1/models HTTP/1.1\r\n${host}expect: the-unexpected\r\nconnection: close\r\n\r\n`,
  'a length and chunks': `POST /v1/embeddings HTTP/1.1\r\n${host}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
  'two lengths': `POST /v1/embeddings HTTP/1.1\r\n${host}content-length: 5\r\ncontent-length: 6\r\n\r\nhello`,
  'a negative length': `POST /v1/embeddings HTTP/1.1\r\n${host}content-length: -1\r\n\r\n`,
};

export interface MalformedResponses {
  /** Responses keyed by a description of the request. */
  readonly malformed: Readonly<Record<string, readonly RawResponse[]>>;
  /** Responses to requests with an API key and a malformed body. */
  readonly bodies: Readonly<Record<string, readonly RawResponse[]>>;
  /** Responses to a valid request followed by garbage. */
  readonly afterRequest: readonly RawResponse[];
  /** Responses to garbage that is still sent after the gateway has responded. */
  readonly continuing: readonly RawResponse[];
}

export async function sendMalformedRequests({ url, apiKey }: Target): Promise<MalformedResponses> {
  const key = `authorization: Bearer ${apiKey}\r\n`;
  const withKey = (request: string): string => request.replace(host, host + key);
  const bodies = {
    'a chunk without a size': withKey(chunked('xyz\r\n')),
    'chunk extensions that are too long': withKey(chunked(`5;${'a'.repeat(20_000)}\r\nhello\r\n`)),
    'a chunk longer than its size': withKey(chunked('2\r\nhello\r\n')),
  };
  const sendAll = async (requests: Readonly<Record<string, string | Buffer>>) =>
    Object.fromEntries(
      await Promise.all(
        Object.entries(requests).map(async ([name, bytes]) => [name, await sendRaw(url, bytes)] as const),
      ),
    );
  return {
    malformed: await sendAll(malformed),
    bodies: await sendAll(bodies),
    afterRequest: await sendRaw(url, `GET /v1/users/profile HTTP/1.1\r\n${host}${key}\r\ngarbage\r\n\r\n`),
    continuing: await keepSending(url),
  };
}

/** Sends garbage for as long as the server accepts it. */
async function keepSending(url: string): Promise<RawResponse[]> {
  const { socket, responses } = await openRaw(url);
  const more = (): void => {
    while (!socket.destroyed && socket.write(Buffer.alloc(16_384, 'x\n')));
  };
  socket.on('drain', more);
  more();
  return await responses();
}
