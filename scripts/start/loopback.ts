import { get } from 'node:http';
import { createServer } from 'node:net';
import { ConfigError } from '../../shared/runtime/config.ts';

/** A port of loopback that nobody listens on now. */
export async function findFreePort(): Promise<number> {
  return await listenOnce('127.0.0.1', 0);
}

/**
 * The port that the api can listen on: the given one, or a free one where that is 0.
 * @throws ConfigError where it cannot: the api would only die of it again and again
 */
export async function checkPort(host: string, port: number): Promise<number> {
  try {
    return await listenOnce(host, port);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = explainRefusal(host, port, code) ?? `The api cannot listen on ${host}:${port}: ${message}`;
    throw new ConfigError(reason, { cause: error });
  }
}

function explainRefusal(host: string, port: number, code: string | undefined): string | null {
  if (code === 'EADDRINUSE')
    return `Port ${port} of ${host} is taken by another program: set PORT to a free one.`;
  if (code === 'EACCES') {
    return `Port ${port} may not be listened on by this user: set PORT to one from 1024 on.`;
  }
  const isNoAddress = code === 'EADDRNOTAVAIL' || code === 'EINVAL';
  const isNoName = code === 'ENOTFOUND' || code === 'EAI_AGAIN';
  if (!isNoAddress && !isNoName) return null;
  const what = isNoName ? 'a name that leads to no address' : 'no address of this machine';
  return `HOST is ${host}, ${what}: set HOST to 127.0.0.1 for this machine alone, or to 0.0.0.0 for all its addresses.`;
}

function listenOnce(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : port));
    });
  });
}

/** The address under which this machine reaches a server that listens on `host`. */
export function localUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/** The body of an answer as JSON, whatever its status; null where nobody answers, or no JSON. */
export function getJson(url: string): Promise<unknown> {
  return new Promise((resolve) => {
    const request = get(url, { timeout: 5_000, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (body += chunk));
      response.on('error', () => resolve(null));
      response.on('end', () => resolve(parseJson(body)));
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(null));
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
