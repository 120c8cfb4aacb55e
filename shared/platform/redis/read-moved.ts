import { replyCode } from './reply-code.ts';
import type { RedisNode } from './redis-urls.ts';

/**
 * @returns the node in a reply such as `MOVED 3999 10.0.0.1:6379`; null for any other error. If the reply has no host,
 * the node is at another port of the same host.
 */
export function readMoved(error: Error, from: RedisNode): RedisNode | null {
  const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(error.message) ?? [];
  if (host === undefined || replyCode(error) === null) return null;
  return { host: host === '' ? from.host : host, port: Number(port) };
}
