import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { lockDataDir } from '../../../scripts/start/data-dir-lock.ts';
import { endProcesses, identifyProcess } from '../../../scripts/processes/process-identity.ts';
import { readFirstLine } from '../../../scripts/start/read-first-line.ts';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';
import { readEndpoints } from '../../../shared/platform/config/config.ts';
import { waitFor } from '../../support/wait-for.ts';
import { makeFolder, readLines } from './fake-parts.ts';

interface Supervisor {
  child: ChildProcess;
  pids: Record<string, number>;
  guardian: number;
  leftovers: string[];
}

async function startSupervisor(t: ExecutionContext, folder: string): Promise<Supervisor> {
  const script = fileURLToPath(new URL('fake-supervisor.js', import.meta.url));
  const child = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => child.kill('SIGKILL'));
  const line = await readFirstLine(child.stdout, new AbortController().signal);
  const started = JSON.parse(line) as Omit<Supervisor, 'child'>;
  // Ends the processes even if the test fails.
  const identities = [...Object.values(started.pids), started.guardian].map(identifyProcess);
  t.teardown(() => endProcesses(identities, 100));
  return { child, ...started };
}

/** Whether a process no longer runs, including one that has exited but has not been reaped. */
const isGone = (pid: number): boolean => identifyProcess(pid).startedAt === null;

test('parts stop before the parts that they use, and Redis stops last', async (t) => {
  const folder = makeFolder(t);
  const { child, pids, guardian } = await startSupervisor(t, folder);
  child.kill('SIGTERM');
  const [code] = (await once(child, 'exit')) as [number];
  t.is(code, 0);
  const diary = readLines(join(folder, 'diary'));
  t.deepEqual(diary.slice(0, 2).toSorted(), ['api', 'worker']);
  t.deepEqual(diary.slice(2), ['s3', 'redis']);
  await waitFor('all processes to exit', () => [...Object.values(pids), guardian].every(isGone));
});

test('after the supervisor is killed, its parts still stop in order, and no process remains', async (t) => {
  const folder = makeFolder(t);
  const { child, pids, guardian } = await startSupervisor(t, folder);
  child.kill('SIGKILL');
  await waitFor('all processes to exit', () => [...Object.values(pids), guardian].every(isGone));
  t.deepEqual(readLines(join(folder, 'diary')).slice(2), ['s3', 'redis']);
  // The files that it did not delete do not affect the next start.
  t.deepEqual(readEndpoints(join(folder, 'data')), {});
  lockDataDir(join(folder, 'data')).release();
});

test('if the guardian is killed, it is replaced by one that knows all parts', async (t) => {
  const folder = makeFolder(t);
  const { child, pids, guardian } = await startSupervisor(t, folder);
  process.kill(guardian, 'SIGKILL');
  const childrenOf = (pid: number): string => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  const known = [guardian, ...Object.values(pids)].map(String);
  if (process.platform === 'linux') {
    await waitFor('a new guardian', () =>
      childrenOf(child.pid!)
        .split(' ')
        .some((pid) => pid && !known.includes(pid)),
    );
  }
  child.kill('SIGKILL');
  await waitFor('all processes to exit', () => Object.values(pids).every(isGone));
  t.pass();
});

test('if a supervisor and its guardian are killed, the next supervisor finds the processes that still run', async (t) => {
  const folder = makeFolder(t);
  const { child, pids, guardian } = await startSupervisor(t, folder);
  process.kill(guardian, 'SIGKILL');
  child.kill('SIGKILL');
  await once(child, 'exit');
  const lock = lockDataDir(join(folder, 'data'));
  t.teardown(() => lock.release());
  const { leftovers } = lock;
  t.deepEqual(Object.keys(leftovers).toSorted(), ['api', 'redis', 's3', 'worker']);
  await endProcesses(Object.values(leftovers), 5_000);
  t.true(Object.values(pids).every(isGone));
});

test('a second start on the same data folder fails, and the error identifies the running supervisor', async (t) => {
  const folder = makeFolder(t);
  const { child } = await startSupervisor(t, folder);
  const error = t.throws(() => lockDataDir(join(folder, 'data')), { instanceOf: ConfigError });
  t.true(error?.message.includes(`pid ${child.pid}`));
  t.regex(error?.message ?? '', /since \d{4}-\d\d-\d\dT/);
});

test('a lock is taken over if its pid now belongs to another process', (t) => {
  const folder = makeFolder(t);
  const lock = lockDataDir(folder);
  const path = join(folder, 'supervisor.json');
  t.is((JSON.parse(readFileSync(path, 'utf8')) as { pid: number }).pid, process.pid);
  t.throws(() => lockDataDir(folder), { instanceOf: ConfigError });
  lock.release();
  t.deepEqual(lockDataDir(folder).leftovers, {});
});
