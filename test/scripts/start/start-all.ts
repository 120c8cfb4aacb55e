import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { dist } from '../../../scripts/start/paths.ts';
import { endProcesses, identifyProcess } from '../../../scripts/processes/process-identity.ts';
import { waitFor } from '../../support/wait-for.ts';
import { makeFolder } from './fake-parts.ts';

export interface StartAllOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** Runs `npm start` with all its parts, in a new folder and on a free port. */
export async function startAll(t: ExecutionContext, { args = [], env = {} }: StartAllOptions = {}) {
  const dataDir = makeFolder(t);
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, [dist('scripts/start/main.js'), ...args], {
    env: { PATH, HOME, DATA_DIR: dataDir, PORT: '0', DEMO_ACCOUNT: 'off', LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // After `exit`, the last lines of the output may still be on their way.
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await waitFor(
    () => `npm start, which printed: ${output}`,
    () => output.includes('Ready in') || child.exitCode !== null,
    90_000,
  );
  const findParts = () => {
    const supervisor = JSON.parse(readFileSync(join(dataDir, 'supervisor.json'), 'utf8')) as {
      parts: Record<string, { pid: number }>;
    };
    return Object.entries(supervisor.parts).map(([name, { pid }]) => ({ name, ...identifyProcess(pid) }));
  };
  const parts = findParts();
  // Ends the processes even if the test fails.
  t.teardown(() => endProcesses(parts, 100));
  return { dataDir, child, ended, parts, findParts, readOutput: () => output };
}

export const isGone = ({ pid }: { readonly pid: number }): boolean => identifyProcess(pid).startedAt === null;
