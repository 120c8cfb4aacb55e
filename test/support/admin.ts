import { execFile } from 'node:child_process';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runCommandLine } from '../../scripts/admin/run-command-line.ts';

const entry = fileURLToPath(new URL('../../scripts/admin/main.js', import.meta.url));

export interface AdminResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs an admin command against a stack, in this process, because starting Node takes longer than most commands. */
export async function runAdmin(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<AdminResult> {
  const [stdout, stderr] = [new CapturedText(), new CapturedText()];
  const exitCode = await runCommandLine([...args], { ...env }, { stdout, stderr });
  return { exitCode, stdout: stdout.text, stderr: stderr.text };
}

class CapturedText extends Writable {
  text = '';

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

/** Runs an admin command in a child process, as an operator does. */
export async function spawnAdmin(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<AdminResult> {
  const options = { env: { PATH: process.env['PATH'], ...env } };
  return await new Promise((resolve) => {
    const child = execFile(process.execPath, [entry, ...args], options, (_error, stdout, stderr) => {
      resolve({ exitCode: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

/** The JSON output of a command with any exit code. */
export async function readAdmin<T>(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<T> {
  return parseOutput(await runAdmin(env, ...args, '--json')) as T;
}

/** Like `readAdmin`, with the command in a child process. */
export async function readSpawnedAdmin<T>(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<T> {
  return parseOutput(await spawnAdmin(env, ...args, '--json')) as T;
}

function parseOutput({ stdout, stderr }: AdminResult): unknown {
  if (stdout === '') throw new Error(`the admin command printed nothing: ${stderr}`);
  return JSON.parse(stdout);
}
