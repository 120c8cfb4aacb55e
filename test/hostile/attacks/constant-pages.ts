import { openRaw } from '../../support/raw-caller.ts';
import type { Target } from './target.ts';

export interface ConstantPagesTarget extends Pick<Target, 'url'> {
  /** Number of concurrent connections. */
  readonly connections?: number;
  /** Requests that each connection sends without waiting for a response. */
  readonly pipelined?: number;
  readonly paths?: readonly string[];
}

/** Paths of pages that need no key. */
const publicPaths = [
  '/docs',
  '/v1/openapi.json',
  '/v1/models',
  '/v1/models/demo-echo',
  '/v1/models/status',
  '/v1/logs/summary',
  '/v1/servers',
];

/**
 * Floods a gateway, without a key, with pipelined requests for constant pages, and reads all responses.
 * @returns the number of responses with status 200
 */
export async function floodConstantPages({
  url,
  connections = 8,
  pipelined = 100,
  paths = publicPaths,
}: ConstantPagesTarget): Promise<number> {
  const flood = async (i: number): Promise<number> => {
    const requests = Array.from({ length: pipelined }, (_, j) => {
      const close = j === pipelined - 1 ? 'Connection: close\r\n' : '';
      return `GET ${paths[(i + j) % paths.length]!} HTTP/1.1\r\nHost: attacker\r\nAccept-Encoding: gzip\r\n${close}\r\n`;
    });
    const caller = await openRaw(url);
    caller.socket.write(requests.join(''));
    return (await caller.closed).split('HTTP/1.1 200 OK\r\n').length - 1;
  };
  const all = await Promise.all(Array.from({ length: connections }, (_, i) => flood(i)));
  return all.reduce((sum, ok) => sum + ok, 0);
}
