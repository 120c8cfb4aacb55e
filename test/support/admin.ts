import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const entry = fileURLToPath(new URL('../../scripts/admin/main.js', import.meta.url));

export interface AdminAnswer {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the admin command as an operator does, beside a stack. */
export async function runAdmin(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<AdminAnswer> {
  const options = { env: { PATH: process.env['PATH'], ...env } };
  return await new Promise((resolve) => {
    const child = execFile(process.execPath, [entry, ...args], options, (_error, stdout, stderr) => {
      resolve({ exitCode: child.exitCode ?? -1, stdout, stderr });
    });
  });
}

/** The JSON that a command printed, whatever its exit code. */
export async function readAdmin<T>(
  env: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<T> {
  const { stdout, stderr } = await runAdmin(env, ...args, '--json');
  if (stdout === '') throw new Error(`the admin command printed nothing: ${stderr}`);
  return JSON.parse(stdout) as T;
}
