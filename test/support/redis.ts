import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { endWithParent } from './end-with-parent.ts';
import { findStablePort } from './stable-port.ts';

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface TestRedisOptions {
  /** Defaults to a free port. */
  readonly port?: number;
  /** Where it persists its writes; without it nothing is persisted. */
  readonly dir?: string;
}

/** A dedicated redis-server. */
export async function startTestRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  for (;;) {
    const server = await tryToStart(options.port ?? (await findStablePort()), options.dir);
    if (server !== null) return server;
    if (options.port !== undefined) throw new Error(`port ${options.port} is taken`);
  }
}

/** Starts a redis-server. @returns null if another server uses the port: tests must not share a Redis by accident */
async function tryToStart(port: number, dir: string | undefined): Promise<TestRedis | null> {
  const persistence =
    dir === undefined
      ? ['--appendonly', 'no']
      : ['--appendonly', 'yes', '--appendfsync', 'always', '--dir', dir];
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', ...persistence];
  const [program, ...rest] = endWithParent(['redis-server', ...args]);
  const child = spawn(program, rest, { stdio: 'ignore' });
  const exited = once(child, 'exit');
  // A server that is kept for later tests does not keep the process from exiting.
  child.unref();
  const stop = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    child.ref();
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
  };
  const url = `redis://127.0.0.1:${port}`;
  const client = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on('error', () => undefined);
  const info = await Promise.race([client.info('server'), exited.then(() => '')]);
  client.disconnect();
  if (info.includes(`process_id:${child.pid}\r\n`)) return { url, port, stop };
  await stop();
  return null;
}
