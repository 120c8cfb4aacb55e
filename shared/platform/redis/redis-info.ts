import type { Redis } from 'ioredis';
import type { RedisClient } from './redis-client.ts';

/** Returns a field of one server's `INFO`. Null if the server did not report it. */
export type RedisInfo = (name: string) => string | null;

/**
 * Reads sections of `INFO` from each server, because managed servers refuse `CONFIG GET`. One round trip. A server that
 * does not respond, or whose `INFO` the user may not read, reports nothing.
 */
export async function readInfo(redis: RedisClient, ...sections: string[]): Promise<RedisInfo[]> {
  const servers: readonly Pick<Redis, 'info'>[] = 'nodes' in redis ? redis.nodes('master') : [redis];
  const texts = await Promise.all(servers.map((server) => server.info(...sections).catch(() => '')));
  return texts.map(parseInfo);
}

function parseInfo(text: string): RedisInfo {
  const lines = text.split('\r\n');
  return (name) => lines.find((line) => line.startsWith(`${name}:`))?.slice(name.length + 1) ?? null;
}
