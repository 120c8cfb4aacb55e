import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { ExecutionContext } from 'ava';
import { readAccess, readNode, splitRedisUrls } from '../../shared/platform/redis/redis-urls.ts';
import { waitFor } from './wait-for.ts';

/** A command as MONITOR shows it: `1795356950.490470 [0 127.0.0.1:54970] "evalsha" "35e8…" "2" "mg:{s00}:held"`. */
export interface WatchedCommand {
  /** Address of the connection that sent it. */
  readonly from: string;
  readonly name: string;
  /** Its arguments as shown: quoted and escaped. */
  readonly args: string;
}

/**
 * Every command that Redis receives from now on, in order; on a Cluster, in order per node. Commands inside scripts are
 * left out. Reads directly from a socket: ioredis would mistake a command that arrives before the reply to MONITOR for
 * that reply.
 */
export async function watchRedis(t: ExecutionContext, urls: string): Promise<readonly WatchedCommand[]> {
  const commands: WatchedCommand[] = [];
  await Promise.all(splitRedisUrls(urls).map((url) => watchNode(t, url, commands)));
  return commands;
}

async function watchNode(t: ExecutionContext, url: string, commands: WatchedCommand[]): Promise<void> {
  const { host, port } = readNode(url);
  const { password } = readAccess(url);
  const socket = connect(port, host);
  t.teardown(() => socket.destroy());
  const login = password === undefined ? [] : [`AUTH ${password}`];
  let unanswered = login.length + 1;
  createInterface(socket).on('line', (line) => {
    if (line === '+OK') unanswered -= 1;
    const [, from, name, args] = /^\+[\d.]+ \[\d+ ([\d.:]+)\] "(\w+)" ?(.*)$/.exec(line) ?? [];
    if (from !== undefined) commands.push({ from, name: name!.toLowerCase(), args: args! });
  });
  socket.write([...login, 'MONITOR', ''].join('\r\n'));
  await waitFor('Redis to start MONITOR', () => unanswered === 0);
}
