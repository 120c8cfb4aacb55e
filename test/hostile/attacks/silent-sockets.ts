import { openRaw, type RawCaller } from '../../support/raw-caller.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Target } from './target.ts';

export interface SilentSocketsOptions {
  readonly count?: number;
  /** The attack goes on until the gateway has closed so many, and fails where it does not. */
  readonly leastClosed?: number;
}

export interface SilentSockets {
  /** Of those that were opened, how many the gateway has closed by the end of the attack. */
  readonly closed: number;
  /** What somebody at another address is told meanwhile, by a new connection each time; 0 where that comes to nothing. */
  readonly statuses: readonly number[];
}

/** After 20 s they would be closed because of what they do not send. */
const beforeTheyAreLateMs = 10_000;

/** Of loopback, and another than everybody else's: an address has a share of the connections. */
const attacker = '127.0.0.2';

/** Opens connections and leaves them: without a word, within their headers, and before the first byte of their body. */
export async function openSilentSockets({
  url,
  apiKey,
  count = 400,
  leastClosed = 0,
}: Target & SilentSocketsOptions): Promise<SilentSockets> {
  const words = [
    '',
    'GET /v1/models HTTP/1.1\r\nhost: a\r\nx-slow: ',
    `POST /v1/embeddings HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n` +
      'content-type: application/json\r\ncontent-length: 1000\r\n\r\n',
  ];
  const sockets: RawCaller[] = [];
  for (let i = 0; i < count; i++) {
    const caller = await openRaw(url, { from: attacker });
    caller.socket.write(words[i % words.length]!);
    sockets.push(caller);
  }
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) {
    const response = fetch(`${url}/v1/models`, { headers: { connection: 'close' } });
    statuses.push(await response.then(({ status }) => status).catch(() => 0));
  }
  const countClosed = (): number =>
    sockets.filter(({ socket }) => socket.destroyed || socket.readableEnded).length;
  await waitFor(
    () => `${leastClosed} connections to be closed, where ${countClosed()} are`,
    () => countClosed() >= leastClosed,
    beforeTheyAreLateMs,
  );
  const closed = countClosed();
  for (const { socket } of sockets) socket.destroy();
  return { closed, statuses };
}
