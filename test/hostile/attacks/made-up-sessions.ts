import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { Target } from './target.ts';

export interface MadeUpSessionsOptions extends Pick<Target, 'url'> {
  readonly requests: number;
  readonly concurrency: number;
  /** Prefix of the cookie names, required if the service uses https. */
  readonly prefix?: string;
  /** A valid token; some made-up tokens differ from it in one character. */
  readonly issued?: string;
}

/** The length of a valid token. */
const tokenBytes = 64;

function makeUp(index: number, issued: string | undefined): string {
  if (issued === undefined || index % 2 === 0) return randomBytes(tokenBytes).toString('base64url');
  const at = index % issued.length;
  const other = issued[at] === 'A' ? 'Z' : 'A';
  return `${issued.slice(0, at)}${other}${issued.slice(at + 1)}`;
}

/**
 * Sends reads and refreshes with made-up session cookies, each used once.
 * @returns the number of responses by status
 */
export async function sendMadeUpSessions(
  options: MadeUpSessionsOptions,
): Promise<ReadonlyMap<number, number>> {
  const { url, requests, concurrency, prefix = '', issued } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  const statuses = new Map<number, number>();
  let sent = 0;
  const send = async (): Promise<void> => {
    while (sent < requests) {
      sent += 1;
      const [method, path, cookie] =
        sent % 3 === 0 ? ['POST', 'auth/refresh', 'mg_refresh'] : ['GET', 'api-accounts', 'mg_session'];
      const headers = { cookie: `${prefix}${cookie}=${makeUp(sent, issued)}` };
      const status = await new Promise<number>((resolve, reject) => {
        const call = request(`${url}/v1/web/${path}`, { method, headers, agent }, (response) => {
          response.resume();
          response.once('end', () => resolve(response.statusCode ?? 0));
          response.once('error', reject);
        });
        call.once('error', reject);
        call.end();
      });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, send));
  agent.destroy();
  return statuses;
}
