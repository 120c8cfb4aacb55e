import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import type { ExecutionContext } from 'ava';
import { waitFor } from './wait-for.ts';

/** A command as Redis shows it: `1795356950.490470 [0 127.0.0.1:54970] "evalsha" "35e8…" "2" "mg:{s00}:held"`. */
export interface WatchedCommand {
  /** Address of the connection that sent it. */
  readonly from: string;
  readonly name: string;
  /** Its arguments as they are shown: quoted and escaped. */
  readonly args: string;
}

/**
 * Every command that Redis gets from now on, in its order; those of scripts are left out. Straight from the socket:
 * ioredis takes a command that comes before the answer to its MONITOR for that answer.
 */
export async function watchRedis(t: ExecutionContext, url: string): Promise<readonly WatchedCommand[]> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  t.teardown(() => socket.destroy());
  const commands: WatchedCommand[] = [];
  let isWatching = false;
  createInterface(socket).on('line', (line) => {
    if (line === '+OK') isWatching = true;
    const [, from, name, args] = /^\+[\d.]+ \[\d+ ([\d.:]+)\] "(\w+)" ?(.*)$/.exec(line) ?? [];
    if (from !== undefined) commands.push({ from, name: name!.toLowerCase(), args: args! });
  });
  socket.write('MONITOR\r\n');
  await waitFor('Redis to show its commands', () => isWatching);
  return commands;
}
