import { openRaw, type RawCaller } from '../../support/raw-caller.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Target } from './target.ts';

export interface SilentSocketsOptions {
  readonly count?: number;
  /** The attack waits until the gateway has closed this many connections, and throws if it does not. */
  readonly minClosed?: number;
}

export interface SilentSockets {
  /** The number of connections that the gateway has closed by the end of the attack. */
  readonly closed: number;
  /**
   * The statuses that a caller at another address gets during the attack, each on a new connection; 0 if the call
   * fails.
   */
  readonly statuses: readonly number[];
}

/** Must be under the gateway's header timeout of 20 s, after which it closes silent connections in any case. */
const beforeTimeoutMs = 10_000;

/** The other caller uses a separate loopback address, because connections are limited per address. */
const attacker = '127.0.0.2';

/**
 * Opens connections and leaves them idle before the first byte, within the headers, or before the first byte of the
 * body.
 */
export async function openSilentSockets({
  url,
  apiKey,
  count = 400,
  minClosed = 0,
}: Target & SilentSocketsOptions): Promise<SilentSockets> {
  const openings = [
    '',
    'GET /v1/models HTTP/1.1\r\nhost: a\r\nx-slow: ',
    `POST /v1/embeddings HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n` +
      'content-type: application/json\r\ncontent-length: 1000\r\n\r\n',
  ];
  const sockets: RawCaller[] = [];
  for (let i = 0; i < count; i++) {
    const caller = await openRaw(url, { from: attacker });
    caller.socket.write(openings[i % openings.length]!);
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
    () => `${minClosed} connections to be closed, so far ${countClosed()}`,
    () => countClosed() >= minClosed,
    beforeTimeoutMs,
  );
  const closed = countClosed();
  for (const { socket } of sockets) socket.destroy();
  return { closed, statuses };
}
