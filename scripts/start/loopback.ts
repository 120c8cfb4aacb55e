import { randomInt } from 'node:crypto';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { explainListenError, type PortSetting } from '../../shared/platform/runtime/explain-listen-error.ts';
import { formatHttpOrigin } from '../../shared/platform/runtime/format-http-origin.ts';

/**
 * Ports that systems do not choose for outgoing connections. Such a connection could take a free port before the program
 * that it was found for listens. Tests reserve the ports from 12000 on.
 */
const quietPorts = { first: 10_000, last: 12_000 };
const maxTries = 20;
/** What this process has chosen or checked. Nothing may listen there yet, so it looks free. */
const known = new Set<number>();

/** Returns a port that is currently free, on loopback by default. Never returns the same one twice. */
export async function findFreePort(host = '127.0.0.1'): Promise<number> {
  const { first, last } = quietPorts;
  for (let tries = 0; tries < maxTries; tries++) {
    const port = first + randomInt(last - first);
    if (known.has(port)) continue;
    try {
      return await listenOnce(host, port);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
  return await listenOnce(host, 0);
}

/**
 * Returns a port that can be listened on: the given one, or a free one if that is 0.
 * @param setting where the port is set
 * @throws ConfigError if the port is unusable; without this check, its process would fail and be restarted forever
 */
export async function checkPort(host: string, port: number, setting: PortSetting = 'PORT'): Promise<number> {
  try {
    return port === 0 ? await findFreePort(host) : await listenOnce(host, port);
  } catch (error) {
    const explained = explainListenError(host, port, error as Error, setting);
    if (explained instanceof ConfigError) throw explained;
    throw new ConfigError(`${setting} ${port} of ${host} cannot be listened on: ${explained.message}`, {
      cause: error,
    });
  }
}

function listenOnce(host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, host, () => {
      const address = server.address();
      const listenedOn = typeof address === 'object' && address !== null ? address.port : port;
      known.add(listenedOn);
      server.close(() => resolve(listenedOn));
    });
  });
}

/** Returns the URL at which this machine reaches a server that listens on `host`. */
export function localUrl(host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return formatHttpOrigin(reachable, port);
}

/**
 * Fetches a URL. Returns the body of the response as JSON, regardless of its status, or null if there is no response or
 * it is not JSON.
 */
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
