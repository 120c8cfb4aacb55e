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
export const editPath = '/images/edits';

export const toBody = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** Every text is different, so that requests share no work. */
export const createText = (): string => `${randomUUID()} How do I keep bread fresh for two days?`;

const headersOf = ({ apiKey, body, headers }: BenchRequest): Record<string, string> => ({
  authorization: `Bearer ${apiKey}`,
  'content-type': 'application/json',
  'content-length': String(body.length),
  ...headers,
});

/** Sends a request and reads its response to the end. */
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

/**
 * Sends a GET and reads its response to the end.
 * @param request `path` is below `/v1`; without an `apiKey`, the caller is anonymous
 */
export async function read(
  { host, port }: FairnessTarget,
  { path, apiKey }: { readonly path: string; readonly apiKey?: string },
): Promise<{ readonly status: number; readonly text: string }> {
  const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`http://${host}:${port}/v1${path}`, { headers });
  return { status: response.status, text: await response.text() };
}

/** Opens a request on a new connection. The caller must write its body. */
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
  // The gateway may close such a connection. The measurement accounts for that.
  opened.on('error', () => undefined);
  return opened;
}

/**
 * Sends a request without reading its response. Resolves when the headers have arrived or the gateway has closed the
 * connection.
 */
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

/** Pause between requests. Without it, a loop of rejected requests would be faster than any attacker on a network. */
const defaultPauseMs = 20;

/** Keeps this many requests in flight forever. Ignores their results. */
export function keepSending(
  count: number,
  create: (index: number) => Promise<unknown>,
  pauseMs = defaultPauseMs,
): void {
  const send = (index: number): void => {
    const sendNext = (): void => {
      setTimeout(send, pauseMs, index + count);
    };
    create(index).then(sendNext, sendNext);
  };
  for (let i = 0; i < count; i++) send(i);
}
