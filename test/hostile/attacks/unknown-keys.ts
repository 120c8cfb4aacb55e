import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { Target } from './target.ts';

export interface UnknownKeysOptions extends Pick<Target, 'url'> {
  readonly requests: number;
  readonly concurrency: number;
}

/**
 * Sends requests with well-formed keys that do not exist, each used once.
 * @returns the number of responses by status
 */
export async function sendUnknownKeys({
  url,
  requests,
  concurrency,
}: UnknownKeysOptions): Promise<ReadonlyMap<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const statuses = new Map<number, number>();
  let remaining = requests;
  const send = async (): Promise<void> => {
    while (remaining > 0) {
      remaining -= 1;
      const status = await readStatus(url, `mg-${randomBytes(32).toString('base64url')}`, agent);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, send));
  agent.destroy();
  return statuses;
}

/** The status of the response to a key, requested from an address of this machine. */
export async function readStatus(
  url: string,
  apiKey: string,
  agent: Agent | undefined,
  localAddress = '127.0.0.1',
): Promise<number> {
  return await new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const options = { headers, localAddress, ...(agent === undefined ? {} : { agent }) };
    const sent = request(`${url}/v1/users/profile`, options, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode ?? 0));
      response.once('error', reject);
    });
    sent.once('error', reject);
    sent.end();
  });
}
