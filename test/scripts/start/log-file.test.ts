import { closeSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { LogFile } from '../../../scripts/start/log-file.ts';
import { waitFor } from '../../support/wait-for.ts';
import { makeFolder } from './fake-parts.ts';

const isLinux = process.platform === 'linux';
const onLinux = isLinux ? test : test.skip;

function openLog(t: ExecutionContext, maxBytes = 1_000_000) {
  const path = join(makeFolder(t), 'api.log');
  const losses: string[] = [];
  const restored: number[] = [];
  const log = new LogFile(path, {
    maxBytes,
    retryMs: 10,
    onLost: (error) => losses.push((error as NodeJS.ErrnoException).code ?? error.message),
    onRestored: (lines) => restored.push(lines),
  });
  t.teardown(() => log.close());
  return {
    path,
    losses,
    restored,
    write: (text: string) => log.write(Buffer.from(text)),
    read: () => readFileSync(path, 'utf8').split('\n').slice(0, -1),
  };
}

test('the size of a log is limited: there is one full file besides the current one', (t) => {
  const { path, write } = openLog(t, 100);
  for (let line = 0; line < 7; line += 1) write(`${String(line).repeat(39)}\n`);
  t.is(readFileSync(path, 'utf8')[0], '6');
  t.deepEqual([readFileSync(`${path}.1`, 'utf8')[0], readFileSync(`${path}.1`, 'utf8')[40]], ['4', '5']);
  t.deepEqual(readdirSync(join(path, '..')).toSorted(), ['api.log', 'api.log.1']);
});

onLinux(
  'if the disk is full, lines are lost without an exception; the loss is reported once, and the number of lost lines once there is space',
  async (t) => {
    const { path, losses, restored, write, read } = openLog(t);
    symlinkSync('/dev/full', path);
    write('lost 1\nlost 2\n');
    // Half a line now, and the other half when the disk has space again: neither may be written as a line.
    write('lost 3\nlost');
    t.deepEqual([losses, restored], [['ENOSPC'], []]);
    rmSync(path);
    await waitFor('the note to appear', () => restored.length === 1);
    write(' 4\nkept 1\n');
    write('kept 2\n');
    const [note, ...lines] = read();
    t.like(JSON.parse(note!), { level: 'warn', lines: 4, msg: 'log lines lost here' });
    t.deepEqual(lines, ['kept 1', 'kept 2']);
    t.deepEqual([losses, restored], [['ENOSPC'], [4]]);
  },
);

test('if a rotation fails, lines are lost, and the file does not exceed its maximum size', async (t) => {
  const { path, losses, restored, write, read } = openLog(t, 100);
  mkdirSync(join(`${path}.1`, 'in the way'), { recursive: true });
  for (let line = 0; line < 7; line += 1) write(`${String(line).repeat(39)}\n`);
  t.is(losses.length, 1);
  t.deepEqual(read(), ['0'.repeat(39), '1'.repeat(39)]);
  rmSync(`${path}.1`, { recursive: true });
  await waitFor('the note to appear', () => restored.length === 1);
  t.deepEqual(restored, [5]);
  write('kept\n');
  t.is(read().at(-1), 'kept');
});

onLinux('a descriptor that was closed externally is reopened', async (t) => {
  const { path, losses, restored, write, read } = openLog(t);
  write('first\n');
  const isOurs = (fd: string): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path;
    } catch {
      // This descriptor was open only to list the folder, and is already closed.
      return false;
    }
  };
  closeSync(Number(readdirSync('/proc/self/fd').find(isOurs)));
  write('lost\n');
  await waitFor('the note to appear', () => restored.length === 1);
  write('last\n');
  t.deepEqual([losses, restored], [['EBADF'], [1]]);
  t.deepEqual([read()[0], read().at(-1)], ['first', 'last']);
});

test('if its folder is deleted, a log file is created again; a closed log ignores further lines', (t) => {
  const path = join(makeFolder(t), 'logs', 'api.log');
  const log = new LogFile(path, { maxBytes: 20 });
  log.write(Buffer.from('first and long line\n'));
  rmSync(join(path, '..'), { recursive: true });
  log.write(Buffer.from('second\n'));
  t.is(readFileSync(path, 'utf8'), 'second\n');
  log.close();
  log.write(Buffer.from('third\n'));
  t.is(readFileSync(path, 'utf8'), 'second\n');
});
