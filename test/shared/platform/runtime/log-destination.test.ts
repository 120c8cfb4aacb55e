import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';

const program = fileURLToPath(new URL('log-lines.js', import.meta.url));
const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux('a process whose stdout is on a full disk keeps running, and exits when asked to', async (t) => {
  const child = spawn(process.execPath, [program, '20'], {
    stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [stderr, [code]] = await Promise.all([text(child.stderr!), once(child, 'exit')]);
  t.deepEqual([code, stderr], [0, '']);
});

test('if its output is not read, a process continues with bounded memory, and logs later how many lines were lost', async (t) => {
  const lines = 60_000;
  const child = spawn(process.execPath, [program, String(lines)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  // All lines are logged, and the process still responds, before any is read.
  const [{ grownBytes }] = (await once(child, 'message')) as [{ grownBytes: number }];
  t.true(grownBytes < 40_000_000, `grew by ${grownBytes}`);
  const output = (await text(child.stdout!)).trimEnd().split('\n');
  const entries = output.map((line) => JSON.parse(line) as { n?: number; msg: string; lines?: number });
  const kept = entries.flatMap(({ n }) => (n === undefined ? [] : [n]));
  // The pipe accepts some lines before it is read, which leaves space in memory for some later lines.
  t.deepEqual(
    kept.slice(0, 1_000),
    Array.from({ length: 1_000 }, (_, n) => n),
    'the first lines are complete',
  );
  t.true(
    kept.every((n, i) => i === 0 || n > kept[i - 1]!),
    'in order',
  );
  const lost = entries.reduce((sum, entry) => sum + (entry.lines ?? 0), 0);
  t.is(kept.length + lost, lines);
  t.true(kept.length < lines);
});

const runtime = (file: string): string =>
  JSON.stringify(new URL(`../../../../shared/platform/runtime/${file}.js`, import.meta.url));

/** Logs far more than the pipe and the memory limit allow while nobody reads, and then reports that it is ready. */
const loudProgram = `
  import { runProcess } from ${runtime('lifecycle')};
  import { createLogger } from ${runtime('logger')};
  await runProcess('test', async () => {
    const log = createLogger('test', 'info');
    for (let n = 0; n < 500; n += 1) log.info({ text: 'x'.repeat(2_000) }, 'a line');
    setInterval(() => undefined, 60_000);
    // By then some lines are written, and the others are dropped or wait in a thread.
    setTimeout(() => process.send('ready'), 100);
    process.on('message', () => { throw new Error('out of nowhere'); });
    return { running: { stop: async () => undefined }, log };
  });`;

/** The kinds of stdout: `npm start` gives its parts sockets, shells give pipes. */
const outputs = {
  socket: () => 'pipe' as const,
  pipe: (t: ExecutionContext) => {
    const folder = mkdtempSync(join(tmpdir(), 'mg-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    spawnSync('mkfifo', [join(folder, 'log')]);
    // Opened for reading and writing, so that the pipe has a reader, which reads nothing.
    const fd = openSync(join(folder, 'log'), 'r+');
    t.teardown(() => closeSync(fd));
    return fd;
  },
};

for (const [kind, open] of Object.entries(outputs)) {
  for (const [how, end, code] of [
    ['SIGTERM', (child: ChildProcess) => child.kill('SIGTERM'), 0],
    ['an unhandled error', (child: ChildProcess) => child.send('throw'), 1],
  ] as const) {
    test(`if its log is a ${kind} that nobody reads, a process still exits on ${how}`, async (t) => {
      const child = spawn(process.execPath, ['--input-type=module', '--eval', loudProgram], {
        stdio: ['ignore', open(t), 'inherit', 'ipc'],
      });
      t.teardown(() => child.kill('SIGKILL'));
      await once(child, 'message');
      const exited = once(child, 'exit');
      end(child);
      t.deepEqual(await exited, [code, null]);
    });
  }
}
