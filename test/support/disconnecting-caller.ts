import type { TestStack } from './stack.ts';

/** A caller that may disconnect in the middle of a chat. */
export interface DisconnectingCaller {
  /** Reads until the response contains this text. */
  readUntil(text: string): Promise<void>;
  /** Reads to the end. Resolves with the whole response, or rejects if it fails. */
  readonly rest: () => Promise<string>;
  leave(): void;
  readonly requestId: () => string;
}

/** Sends a chat without waiting for its response. The first read waits for the response headers. */
export function startChat(stack: TestStack, apiKey: string, body: object): DisconnectingCaller {
  const caller = new AbortController();
  const pending = fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], ...body }),
    signal: caller.signal,
  });
  // After a disconnect no test awaits the response, so Node would report its rejection as unhandled.
  pending.catch(() => undefined);
  let response: Response | null = null;
  let reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  let seen = '';
  const read = async (): Promise<boolean> => {
    response ??= await pending;
    reader ??= response.body!.getReader();
    const { done, value } = await reader.read();
    if (!done) seen += Buffer.from(value).toString();
    return !done;
  };
  return {
    async readUntil(text) {
      while (!seen.includes(text))
        if (!(await read())) throw new Error(`the response ended with ${seen.slice(-300)}`);
    },
    async rest() {
      while (await read());
      return seen;
    },
    leave: () => caller.abort(),
    requestId: () => response?.headers.get('x-request-id') ?? '',
  };
}
