import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { limitOpenFiles } from './open-files.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

export interface RoleProcess {
  readonly child: ChildProcess;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  /** Asks it to stop, and tells its exit code. */
  terminate(): Promise<number | null>;
}

/**
 * Runs a role as its own process, until the log line that says that it is ready; it is gone when the test ends.
 * @param maxOpenFiles as many as this process where it is not given
 */
export async function startRole(
  t: ExecutionContext,
  role: 'api' | 'worker',
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  maxOpenFiles?: number,
): Promise<RoleProcess & { readonly readyLine: Record<string, unknown> }> {
  const entry = `${root}${role === 'api' ? 'api' : 'workers'}/main.js`;
  const [program, ...rest] = limitOpenFiles([process.execPath, entry, ...args], maxOpenFiles);
  const child = spawn(program, rest, {
    env: { PATH: process.env['PATH'], ...env, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
    return child.exitCode;
  };
  t.teardown(() => end('SIGKILL'));
  const readyLine = await new Promise<Record<string, unknown>>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line) as Record<string, unknown>;
      if (entry['msg'] === `${role} ready`) resolve(entry);
    });
    exited.then(() => reject(new Error(`the ${role} ended before it was ready`)), reject);
  });
  return {
    child,
    readyLine,
    kill: async () => {
      await end('SIGKILL');
    },
    terminate: () => end('SIGTERM'),
  };
}
