import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { readFirstLine } from '../../../scripts/start/read-first-line.ts';
import { waitFor } from '../../support/wait-for.ts';
import { makeFolder } from './fake-parts.ts';

const script = fileURLToPath(new URL('fake-npm.js', import.meta.url));

async function startUnderNpm(t: ExecutionContext) {
  const file = join(makeFolder(t), 'reason');
  const npm = spawn(process.execPath, [script, file], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => npm.kill('SIGKILL'));
  const pid = Number(await readFirstLine(npm.stdout, new AbortController().signal));
  const readReason = async (): Promise<string> => {
    await waitFor('the command to stop', () => existsSync(file) && readFileSync(file, 'utf8') !== '');
    return readFileSync(file, 'utf8');
  };
  return { npm, pid, readReason };
}

test('a command stops when its npm has exited, even if npm started it through a shell', async (t) => {
  const { npm, readReason } = await startUnderNpm(t);
  npm.kill('SIGKILL');
  t.is(await readReason(), 'npm has exited');
});

test('a signal requests a stop', async (t) => {
  const { pid, readReason } = await startUnderNpm(t);
  process.kill(pid, 'SIGHUP');
  t.is(await readReason(), 'SIGHUP');
});
