import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

export interface ExampleRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a compiled example as a user does, with only PATH from this process's environment. */
export async function runExample(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  input = '',
): Promise<ExampleRun> {
  const child = spawn(process.execPath, [`dist/examples/${args[0]}.js`, ...args.slice(1)], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: 'pipe',
  });
  // An example that exits without reading stdin causes a write error.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}
