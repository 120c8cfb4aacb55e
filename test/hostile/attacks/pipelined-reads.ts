import { openRaw } from '../../support/raw-caller.ts';
import type { Target } from './target.ts';

export interface PipelinedReads {
  /** The statuses that another caller receives during the attack. */
  readonly statuses: readonly number[];
}

/** Pipelines many database reads on each of a few connections, and does not read the responses. */
export async function pipelineReads({
  url,
  apiKey,
  path = '/v1/users/request_logs',
  connections = 10,
  requests = 500,
}: Target & {
  readonly path?: string;
  readonly connections?: number;
  readonly requests?: number;
}): Promise<PipelinedReads> {
  const request = `GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${apiKey}\r\n\r\n`;
  const callers = await Promise.all(
    Array.from({ length: connections }, () => openRaw(url, { isPaused: true })),
  );
  for (const { socket } of callers) socket.write(request.repeat(requests));
  const statuses: number[] = [];
  for (let i = 0; i < 5; i++) {
    const response = await fetch(`${url}/v1/servers`);
    await response.arrayBuffer();
    statuses.push(response.status);
  }
  for (const { socket } of callers) socket.destroy();
  return { statuses };
}
