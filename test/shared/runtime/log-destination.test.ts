import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const program = fileURLToPath(new URL('log-lines.js', import.meta.url));
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('a process whose stdout is on a full disk goes on, and ends when it is to', async (t) => {
  const child = spawn(process.execPath, [program, '20'], {
    stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
  t.deepEqual([code, stderr], [0, '']);
});

test('a process whose output nobody reads goes on with bounded memory; once it is read, lost lines are counted', async (t) => {
  const lines = 60_000;
  const child = spawn(process.execPath, [program, String(lines)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  // All are logged, and it still answers, before any is read.
  const [{ grownBytes }] = (await once(child, 'message')) as [{ grownBytes: number }];
  t.true(grownBytes < 40_000_000, `grew by ${grownBytes}`);
  const output = (await text(child.stdout!)).trimEnd().split('\n');
  const entries = output.map((line) => JSON.parse(line) as { n?: number; msg: string; lines?: number });
  const kept = entries.flatMap(({ n }) => (n === undefined ? [] : [n]));
  t.deepEqual(kept, Array.from(kept.keys()), 'the first are kept, whole and in order');
  const note = entries.find(({ msg }) => msg === 'log lines were lost');
  t.is(kept.length + (note?.lines ?? 0), lines);
  t.true(kept.length < lines);
});
