import { spawnSync } from 'node:child_process';
import { accessSync, constants, mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';

const programs = ['redis-server', 'valkey-server'];
/** The first version with BLMPOP, which delivers several chats to a worker in one call. */
const minMajorVersion = 7;

export interface RedisProgram {
  readonly path: string;
  readonly name: string;
  readonly version: string;
}

/** Returns the path of the first of these names that is a program in a PATH folder, or null. */
export function findProgram(names: readonly string[], searchPath: string): string | null {
  for (const name of names) {
    for (const folder of searchPath.split(delimiter)) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not in this folder: try the next one.
      }
    }
  }
  return null;
}

/** @throws ConfigError that explains how to install Redis, if PATH has none or only one that is too old */
export function findRedis(searchPath: string): RedisProgram {
  const path = findProgram(programs, searchPath);
  const advice =
    'install Redis 7 or later (or Valkey) so that redis-server is on the PATH, or set REDIS_URL.';
  if (path === null) throw new ConfigError(`No Redis found: ${advice}`);
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  const version = /\bv=(\d[\w.]*)/.exec(stdout ?? '')?.[1] ?? 'unknown';
  if (Number.parseInt(version, 10) < minMajorVersion)
    throw new ConfigError(`${path} is version ${version}: ${advice}`);
  return { path, name: programs.find((name) => path.endsWith(name))!, version };
}

export interface RedisOptions {
  readonly program: RedisProgram;
  readonly port: number;
  readonly dir: string;
  readonly password: string;
}

/**
 * Binds only to loopback. Redis contains charges that are not in MongoDB yet, so data is on disk within a second and
 * never evicted.
 */
export function redisLaunch({ program, port, dir, password }: RedisOptions) {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const settings = [
    'bind 127.0.0.1',
    `port ${port}`,
    `requirepass ${password}`,
    'dir .',
    'appendonly yes',
    'appendfsync everysec',
    'save ""',
    'maxmemory-policy noeviction',
    'daemonize no',
  ];
  // Through stdin, so that the password is not in process lists.
  return { file: program.path, args: ['-'], cwd: dir, input: `${settings.join('\n')}\n` };
}

/**
 * Resolves when the server has loaded its data and replies.
 * @throws Error when `signal` reports that the server exited
 */
export async function waitUntilRedisReady(
  port: number,
  password: string,
  signal: AbortSignal,
): Promise<void> {
  while (!(await ping(port, password))) {
    if (signal.aborted) throw new Error('it exited before it was ready');
    await delay(15);
  }
}

/** Sends two commands directly, because a client would log and retry errors that are normal here. */
function ping(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    let reply = '';
    socket.on('data', (chunk) => {
      reply += chunk.toString();
      // While Redis loads its data, it replies -LOADING.
      if (reply.includes('+PONG') || reply.includes('-')) socket.end();
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => resolve(reply.includes('+PONG')));
  });
}
