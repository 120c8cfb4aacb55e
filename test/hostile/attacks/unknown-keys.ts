import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { Target } from './target.ts';

export interface UnknownKeysOptions extends Pick<Target, 'url'> {
  readonly requests: number;
  readonly atOnce: number;
}

/**
 * Asks with keys that have the right form and that nobody has, each of them once.
 * @returns how often each status came
 */
export async function sendUnknownKeys({
  url,
  requests,
  atOnce,
}: UnknownKeysOptions): Promise<ReadonlyMap<number, number>> {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const statuses = new Map<number, number>();
  let left = requests;
  const send = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const status = await ask(url, `mg-${randomBytes(32).toString('base64url')}`, agent);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, send));
  agent.destroy();
  return statuses;
}

/** The status of an answer to a key, asked for from an address of this machine. */
export async function ask(
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
