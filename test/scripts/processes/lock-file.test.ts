import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { readLockFile, releaseLockFile, takeLockFile } from '../../../scripts/processes/lock-file.ts';
import { identifyProcess } from '../../../scripts/processes/process-identity.ts';

function makeFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'mg-lock-file-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const self = identifyProcess(process.pid);
const refuse = ({ pid }: { pid: number }): Error => new Error(`held by ${pid}`);

test('a lock file blocks others until it is released, and no other files remain', (t) => {
  const folder = makeFolder(t);
  const path = join(folder, 'lock');
  t.deepEqual(takeLockFile(path, self, refuse), []);
  t.throws(() => takeLockFile(path, self, refuse), { message: `held by ${process.pid}` });
  t.deepEqual(readdirSync(folder), ['lock']);
  releaseLockFile(path);
  t.deepEqual(readdirSync(folder), []);
});

test('the lock file of a process that no longer exists is replaced, and its content is returned', (t) => {
  const path = join(makeFolder(t), 'lock');
  // Another process with the same pid, because it started at another time.
  const dead = { pid: process.pid, startedAt: 'long ago', note: 'left' };
  writeFileSync(path, JSON.stringify(dead));
  t.deepEqual(takeLockFile(path, { ...self, note: 'new' }, refuse), [dead]);
  t.deepEqual(readLockFile(path), { ...self, note: 'new' });
});

test('a damaged lock file does not block anyone', (t) => {
  for (const damaged of ['', '{"pid":', 'null', '{"pid":"1"}']) {
    const path = join(makeFolder(t), 'lock');
    writeFileSync(path, damaged);
    t.deepEqual(takeLockFile(path, self, refuse), []);
    t.deepEqual(readLockFile(path), self);
  }
});

test("another process's lock file is not released", (t) => {
  const path = join(makeFolder(t), 'lock');
  const text = JSON.stringify({ pid: process.pid + 1, startedAt: 'now' });
  writeFileSync(path, text);
  releaseLockFile(path);
  t.is(readFileSync(path, 'utf8'), text);
});

test('of many processes that find the same stale file, exactly one takes the lock', async (t) => {
  const path = join(makeFolder(t), 'lock');
  writeFileSync(path, JSON.stringify({ pid: process.pid, startedAt: 'long ago' }));
  const children = Array.from({ length: 8 }, () =>
    fork(new URL('take-lock-file.js', import.meta.url), [path], { execArgv: [] }),
  );
  t.teardown(() => children.forEach((child) => child.kill('SIGKILL')));
  const answers = children.map(async (child) => {
    const [answer] = (await once(child, 'message')) as [string];
    return answer;
  });
  const ready = await Promise.all(answers);
  t.true(ready.every((answer) => answer === 'ready'));
  const results = children.map(async (child) => {
    const [result] = (await once(child, 'message')) as [string];
    return result;
  });
  for (const child of children) child.send('go');
  const outcomes = await Promise.all(results);
  t.is(outcomes.filter((result) => result === 'held').length, 1, outcomes.join(', '));
  const holder = readLockFile(path);
  t.is(holder?.pid, children[outcomes.indexOf('held')]?.pid);
});
