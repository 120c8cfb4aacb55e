import { openRaw } from '../../support/raw-caller.ts';
import type { Target } from './target.ts';

export interface SlowBodies {
  /** The number of requests by response status. */
  readonly ended: Readonly<Record<string, number>>;
}

/** Sends many small bodies without their last byte, and waits until the gateway has ended each request. */
export async function sendSlowBodies({
  url,
  apiKey,
  count = 200,
  bytes = 60_000,
  sent = bytes - 1,
}: Target & {
  readonly count?: number;
  readonly bytes?: number;
  readonly sent?: number;
}): Promise<SlowBodies> {
  const head =
    `POST /v1/embeddings HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n` +
    `content-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`;
  const text = head + `{"model":"${'a'.repeat(bytes)}`.slice(0, sent);
  const ended: Record<string, number> = {};
  const send = async (): Promise<void> => {
    const caller = await openRaw(url);
    caller.socket.write(text);
    const status = /^HTTP\/1.1 (\d+)/.exec(await caller.closed)?.[1] ?? 'none';
    ended[status] = (ended[status] ?? 0) + 1;
  };
  await Promise.all(Array.from({ length: count }, send));
  return { ended };
}
