import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { Target } from './target.ts';

export interface MadeUpSessionsOptions extends Pick<Target, 'url'> {
  readonly requests: number;
  readonly atOnce: number;
  /** Begins the names of the cookies, as it does where the service is reached by https. */
  readonly prefix?: string;
  /** A token that was issued; some of those that are made up differ from it in one character. */
  readonly issued?: string;
}

/** As long as one that was issued. */
const tokenBytes = 64;

function makeUp(index: number, issued: string | undefined): string {
  if (issued === undefined || index % 2 === 0) return randomBytes(tokenBytes).toString('base64url');
  const at = index % issued.length;
  const other = issued[at] === 'A' ? 'Z' : 'A';
  return `${issued.slice(0, at)}${other}${issued.slice(at + 1)}`;
}

/**
 * Asks and refreshes with cookies that look like those of sessions, each of them once.
 * @returns how often each status came
 */
export async function sendMadeUpSessions(
  options: MadeUpSessionsOptions,
): Promise<ReadonlyMap<number, number>> {
  const { url, requests, atOnce, prefix = '', issued } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const statuses = new Map<number, number>();
  let sent = 0;
  const send = async (): Promise<void> => {
    while (sent < requests) {
      sent += 1;
      const [method, path, cookie] =
        sent % 3 === 0 ? ['POST', 'auth/refresh', 'mg_refresh'] : ['GET', 'api-accounts', 'mg_session'];
      const headers = { cookie: `${prefix}${cookie}=${makeUp(sent, issued)}` };
      const status = await new Promise<number>((resolve, reject) => {
        const asked = request(`${url}/v1/web/${path}`, { method, headers, agent }, (response) => {
          response.resume();
          response.once('end', () => resolve(response.statusCode ?? 0));
          response.once('error', reject);
        });
        asked.once('error', reject);
        asked.end();
      });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, send));
  agent.destroy();
  return statuses;
}
