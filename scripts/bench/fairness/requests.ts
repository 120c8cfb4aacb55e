import { randomUUID } from 'node:crypto';
import { request as requestHttp, type ClientRequest } from 'node:http';
import type { FairnessTarget } from './scenario.ts';

export interface BenchRequest {
  /** Below `/v1`. */
  readonly path: string;
  readonly apiKey: string;
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

export const chatPath = '/chat/completions';
export const embeddingPath = '/embeddings';

export const toBody = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** No two texts are the same, so that nothing is shared between requests. */
export const createText = (): string => `${randomUUID()} How do I keep bread fresh for two days?`;

const headersOf = ({ apiKey, body, headers }: BenchRequest): Record<string, string> => ({
  authorization: `Bearer ${apiKey}`,
  'content-type': 'application/json',
  'content-length': String(body.length),
  ...headers,
});

/** Sends a request and reads its answer to the end. */
export async function send(
  { host, port }: FairnessTarget,
  request: BenchRequest,
  signal: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`http://${host}:${port}/v1${request.path}`, {
    method: 'POST',
    headers: headersOf(request),
    body: new Uint8Array(request.body),
    signal,
  });
  return { status: response.status, text: await response.text() };
}

/** Opens a request on a connection of its own; its body is the caller's to write. */
export function open(target: FairnessTarget, request: BenchRequest): ClientRequest {
  const { host, port } = target;
  const opened = requestHttp({
    host,
    port,
    path: `/v1${request.path}`,
    method: 'POST',
    headers: headersOf(request),
    agent: false,
  });
  // The gateway may end whoever behaves so; that is its right, and the measurement's concern alone.
  opened.on('error', () => undefined);
  return opened;
}

/** Sends a request whose answer is never read. Resolves when its head has come, or when the gateway ended it. */
export async function sendUnread(target: FairnessTarget, request: BenchRequest): Promise<void> {
  const opened = open(target, request);
  await new Promise<void>((resolve) => {
    opened.on('response', (response) => {
      response.on('error', () => undefined);
      response.pause();
      resolve();
    });
    opened.on('close', resolve);
    opened.end(request.body);
  });
}

/** Against a gateway that refuses at once: an attacker is bound by the network, not by a loop without a pause. */
const pauseMs = 20;

/** Keeps so many requests under way for ever. What becomes of each is of no interest. */
export function keepSending(count: number, create: (index: number) => Promise<unknown>): void {
  const send = (index: number): void => {
    const sendNext = (): void => {
      setTimeout(send, pauseMs, index + count);
    };
    create(index).then(sendNext, sendNext);
  };
  for (let i = 0; i < count; i++) send(i);
}
