import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { limitOpenFiles } from './open-files.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

export interface RoleProcess {
  readonly child: ChildProcess;
  readonly readyLine: LogLine;
  /** Resolves with the next log line that has this message. */
  nextLine(message: string): Promise<LogLine>;
  /** Kills it, as in a crash. */
  kill(): Promise<void>;
  /** Sends SIGTERM. @returns the exit code */
  terminate(): Promise<number | null>;
}

export type LogLine = Readonly<Record<string, unknown>>;

/**
 * Runs a role in its own process, until its ready line is logged; it is killed when the test ends.
 * @param maxOpenFiles by default the same limit as this process
 */
export async function startRole(
  t: ExecutionContext,
  role: 'api' | 'worker',
  env: Readonly<Record<string, string>>,
  args: readonly string[] = [],
  maxOpenFiles?: number,
): Promise<RoleProcess> {
  const entry = `${root}${role === 'api' ? 'api' : 'workers'}/main.js`;
  return await startProgram(t, role, [entry, ...args], env, maxOpenFiles);
}

/** Like `startRole`, for another Node program that logs the role's ready line. */
export async function startProgram(
  t: ExecutionContext,
  role: 'api' | 'worker',
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  maxOpenFiles?: number,
): Promise<RoleProcess> {
  const [program, ...rest] = limitOpenFiles([process.execPath, ...args], maxOpenFiles);
  const child = spawn(program, rest, {
    env: { PATH: process.env['PATH'], ...env, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const terminateWith = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    await exited;
    return child.exitCode;
  };
  t.teardown(() => terminateWith('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  const nextLine = (message: string): Promise<LogLine> =>
    new Promise((resolve, reject) => {
      const take = (line: string): void => {
        const entry = JSON.parse(line) as LogLine;
        if (entry['msg'] !== message) return;
        lines.off('line', take);
        resolve(entry);
      };
      lines.on('line', take);
      exited.then(() => reject(new Error(`the ${role} exited before logging "${message}"`)), reject);
    });
  return {
    child,
    readyLine: await nextLine(`${role} ready`),
    nextLine,
    kill: async () => {
      await terminateWith('SIGKILL');
    },
    terminate: () => terminateWith('SIGTERM'),
  };
}
