import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { dist } from '../../scripts/start/paths.ts';
import { readFirstLine } from '../../scripts/start/read-first-line.ts';
import { limitOpenFiles } from './open-files.ts';

export interface EmbeddedProcess {
  readonly endpoint: string;
  readonly child: ChildProcess;
  /** Its peak memory use, or null if the system does not report it. */
  readPeakBytes(): Promise<number | null>;
  /** Sends the signal, and waits until the process exits. @returns the exit code */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface EmbeddedProcessOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
  /** Maximum open files of the process, including connections. */
  readonly maxFiles?: number;
}

/** Runs the embedded MongoDB, S3 or SMTP server as `npm start` does: in its own process, with data in a test folder. */
export async function startEmbedded(
  t: ExecutionContext,
  name: 'mongo' | 's3' | 'smtp',
  { env = {}, input = '', maxFiles }: EmbeddedProcessOptions = {},
): Promise<EmbeddedProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const command = [process.execPath, dist(`scripts/embedded/${name}/main.js`), '--dir', dir];
  const [program, ...rest] = limitOpenFiles(command, maxFiles);
  const child = spawn(program, rest, {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  child.stdin.end(input);
  const exited = once(child, 'exit') as Promise<[number | null]>;
  const ended = new AbortController();
  exited.finally(() => ended.abort()).catch(() => undefined);
  const { endpoint } = JSON.parse(await readFirstLine(child.stdout, ended.signal)) as { endpoint: string };
  return {
    endpoint,
    child,
    async readPeakBytes() {
      if (process.platform !== 'linux') return null;
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+)/.exec(status)![1]) * 1_024;
    },
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      const [code] = await exited;
      return code;
    },
  };
}
