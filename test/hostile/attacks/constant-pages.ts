import { connect } from 'node:net';

export interface ConstantPagesTarget {
  readonly url: string;
  /** Connections at once. */
  readonly connections?: number;
  /** Requests that each sends without waiting for an answer. */
  readonly pipelined?: number;
  readonly paths?: readonly string[];
}

export interface ConstantPages {
  /** Answers that began with 200. */
  readonly answered: number;
  readonly bytes: number;
}

/** What anybody may read. */
export const publicPaths = [
  '/docs',
  '/v1/openapi.json',
  '/v1/models',
  '/v1/models/demo-echo',
  '/v1/models/status',
  '/v1/logs/summary',
  '/v1/servers',
];

/** Floods a gateway, without a key, with pipelined requests for pages that are the same for all; everything is read. */
export async function floodConstantPages({
  url,
  connections = 8,
  pipelined = 100,
  paths = publicPaths,
}: ConstantPagesTarget): Promise<ConstantPages> {
  const flood = (i: number): Promise<ConstantPages> => {
    const requests = Array.from({ length: pipelined }, (_, j) => {
      const close = j === pipelined - 1 ? 'Connection: close\r\n' : '';
      return `GET ${paths[(i + j) % paths.length]!} HTTP/1.1\r\nHost: attacker\r\n${close}\r\n`;
    });
    return sendAll(new URL(url), requests.join(''));
  };
  const all = await Promise.all(Array.from({ length: connections }, (_, i) => flood(i)));
  return {
    answered: all.reduce((sum, { answered }) => sum + answered, 0),
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

const head = 'HTTP/1.1 200 OK\r\n';

async function sendAll({ hostname, port }: URL, text: string): Promise<ConstantPages> {
  return await new Promise((resolve) => {
    let answered = 0;
    let bytes = 0;
    /** The end of what came before, where a head may have begun. */
    let rest = '';
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on('data', (chunk) => {
      bytes += chunk.length;
      const seen = rest + chunk.toString('latin1');
      answered += seen.split(head).length - 1;
      rest = seen.slice(-(head.length - 1));
    });
    // A gateway may cut who asks too much.
    socket.on('error', () => undefined);
    socket.once('close', () => resolve({ answered, bytes }));
  });
}
