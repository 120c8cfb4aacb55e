import { openRaw } from '../../support/raw-caller.ts';
import type { Target } from './target.ts';

/**
 * Requests a stream and reads only its head. Resolves when the gateway has closed the connection.
 * @returns the request id
 */
export async function leaveStreamUnread({
  url,
  apiKey,
  model,
}: Target & { readonly model: string }): Promise<string> {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hello' }] });
  const caller = await openRaw(url);
  caller.socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const head = await caller.until('\r\n\r\n');
  caller.socket.pause();
  const requestId = /x-request-id: (\S+)/i.exec(head)?.[1] ?? '';
  // A socket that is not read only notices that it was closed when it writes.
  const timer = setInterval(() => caller.socket.write('\r\n'), 100);
  await caller.closed;
  clearInterval(timer);
  return requestId;
}
