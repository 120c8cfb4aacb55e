import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { credentials } from './support.ts';

const mainPath = fileURLToPath(new URL('../../../../scripts/embedded/s3/main.js', import.meta.url));
export const env = {
  AWS_ACCESS_KEY_ID: credentials.accessKeyId,
  AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
};

export interface Run {
  child: ChildProcess;
  /** The exit code and the whole output, once the process has exited. */
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
  /** The first line of stdout. */
  firstLine: Promise<string>;
}

/** Runs the server's program in a process of its own. */
export function run(t: ExecutionContext, args: string[], environment: object, nodeArgs: string[] = []): Run {
  const child = spawn(process.execPath, [...nodeArgs, mainPath, ...args], {
    env: { ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  const firstLine = new Promise<string>((resolve) => {
    child.stdout.on('data', (part: Buffer) => {
      stdout += part.toString();
      const end = stdout.indexOf('\n');
      if (end !== -1) resolve(stdout.slice(0, end));
    });
  });
  child.stderr.on('data', (part: Buffer) => {
    stderr += part.toString();
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }));
  return { child, ended, firstLine };
}
