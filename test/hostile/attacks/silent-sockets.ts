import { openRaw, type RawCaller } from '../../support/raw-caller.ts';
import type { Target } from './target.ts';

export interface SilentSockets {
  /** Of those that were opened, how many the gateway has closed by the end of the attack. */
  readonly closed: number;
  /** What somebody else is told meanwhile, by a new connection each time; 0 where that comes to nothing. */
  readonly statuses: readonly number[];
}

/** Opens connections and leaves them: without a word, within their headers, and before the first byte of their body. */
export async function openSilentSockets({
  url,
  apiKey,
  count = 400,
}: Target & { readonly count?: number }): Promise<SilentSockets> {
  const words = [
    '',
    'GET /v1/models HTTP/1.1\r\nhost: a\r\nx-slow: ',
    `POST /v1/embeddings HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n` +
      'content-type: application/json\r\ncontent-length: 1000\r\n\r\n',
  ];
  const sockets: RawCaller[] = [];
  for (let i = 0; i < count; i++) {
    const caller = await openRaw(url);
    caller.socket.write(words[i % words.length]!);
    sockets.push(caller);
  }
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) {
    const response = fetch(`${url}/v1/models`, { headers: { connection: 'close' } });
    statuses.push(await response.then(({ status }) => status).catch(() => 0));
  }
  const closed = sockets.filter(({ socket }) => socket.destroyed || socket.readableEnded).length;
  for (const { socket } of sockets) socket.destroy();
  return { closed, statuses };
}
