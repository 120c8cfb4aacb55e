import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { explainDeath } from '../../../scripts/start/explain-death.ts';
import { PartFailed, SupervisedPart } from '../../../scripts/start/supervise.ts';
import { isAlive } from '../../../shared/platform/runtime/is-alive.ts';
import { waitFor } from '../../support/wait-for.ts';
import { EventLog, fakePart, makeFolder, politeCode, readLines } from './fake-parts.ts';

const endless = `setInterval(() => undefined, 1_000); console.log('ready');`;

test('a killed part is reported with its signal and runs again within a second', async (t) => {
  const events = new EventLog();
  const part = new SupervisedPart(fakePart(makeFolder(t), 'one', endless), events);
  t.teardown(() => part.stop());
  await part.start();
  process.kill(part.pid!, 'SIGKILL');
  await waitFor('the part to run again', () => events.restarts.length === 1);
  t.is(events.deaths[0]?.signal, 'SIGKILL');
  t.true(events.deaths[0]!.restartInMs < 1_000);
  t.is(events.pids.length, 2);
  t.is(part.pid, events.pids[1]);
});

test('a part that keeps dying is restarted with growing delays of at most five seconds', async (t) => {
  const events = new EventLog();
  const code = `console.error('TypeError: nothing works'); process.exit(3);`;
  const part = new SupervisedPart(fakePart(makeFolder(t), 'one', code, { firstStart: 'retry' }), events);
  t.teardown(() => part.stop());
  part.start().catch(() => undefined);
  await waitFor('three deaths', () => events.deaths.length === 3);
  const waits = events.deaths.map((death) => death.restartInMs);
  t.deepEqual(
    waits,
    waits.toSorted((a, b) => a - b),
  );
  t.true(Math.max(...waits) <= 5_000);
  t.is(events.deaths[0]?.code, 3);
  t.is(events.deaths[0]?.reason, 'TypeError: nothing works');
});

test('if an essential part does not start, the reason is reported and the start is not retried', async (t) => {
  const events = new EventLog();
  const part = new SupervisedPart(
    fakePart(makeFolder(t), 'one', `console.error('no room'); process.exit(1);`),
    events,
  );
  await t.throwsAsync(part.start(), {
    instanceOf: PartFailed,
    message: 'one did not start (exit code 1: no room)',
  });
  t.is(events.pids.length, 1);
});

test('if its program does not exist, a part counts as not started', async (t) => {
  const spec = {
    ...fakePart(makeFolder(t), 'one', ''),
    launch: () => ({ file: '/nowhere/redis', args: [] }),
  };
  const part = new SupervisedPart(spec, new EventLog());
  await t.throwsAsync(part.start(), { instanceOf: PartFailed, message: /ENOENT/ });
});

test('if no file descriptors are free, this is reported, and the part and the guardian start once some are free', async (t) => {
  const program = fileURLToPath(new URL('scarce-supervisor.js', import.meta.url));
  const child = spawn('sh', ['-c', 'ulimit -n 64; exec "$0" "$1"', process.execPath, program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  t.deepEqual([code, stderr], [0, '']);
  t.deepEqual(JSON.parse(stdout), ['sleep cannot be started: too many open files']);
});

test('if a part cannot start because resources are short, the start is retried', async (t) => {
  const events = new EventLog();
  const spec = fakePart(makeFolder(t), 'one', endless, { firstStart: 'retry' });
  const launches = [{ file: 'true', args: ['x'.repeat(4_000_000)] }, spec.launch()];
  const part = new SupervisedPart({ ...spec, launch: () => launches.shift()! }, events);
  t.teardown(() => part.stop());
  await part.start();
  t.regex(events.deaths[0]?.reason ?? '', /E2BIG/);
  t.is(events.pids.length, 1);
});

test('a stopped part finishes its work in progress, and is not restarted', async (t) => {
  const folder = makeFolder(t);
  const diary = join(folder, 'diary');
  const events = new EventLog();
  const part = new SupervisedPart(fakePart(folder, 'one', politeCode('one', diary)), events);
  await part.start();
  await part.stop();
  t.deepEqual(readLines(diary), ['one']);
  t.is(events.deaths.length, 0);
  t.false(isAlive(events.pids[0]!));
});

test('if a part does not stop in time, it is killed', async (t) => {
  const code = `process.on('SIGTERM', () => undefined); ${endless}`;
  const events = new EventLog();
  const part = new SupervisedPart(fakePart(makeFolder(t), 'one', code, { stopTimeoutMs: 200 }), events);
  await part.start();
  await part.stop();
  t.false(isAlive(events.pids[0]!));
});

test('if a part is stopped while it waits for its restart, it does not start', async (t) => {
  const events = new EventLog();
  const part = new SupervisedPart(fakePart(makeFolder(t), 'one', endless), events);
  await part.start();
  process.kill(part.pid!, 'SIGKILL');
  await waitFor('its death to be detected', () => events.deaths.length === 1);
  await part.stop();
  t.is(events.pids.length, 1);
  t.is(part.pid, undefined);
});

test('of a stack trace or a fatal log line only the message is reported, but plain text is reported in full', (t) => {
  const trace = `file:///x.js:3\n  throw new Error('a');\n  ^\n\nError: broken: yes\n    at x.js:3:1\n\nNode.js v20.20.2\n`;
  t.is(explainDeath(trace), 'Error: broken: yes');
  t.is(
    explainDeath('These are wrong:\n  PORT must be a number\n'),
    'These are wrong:\n    PORT must be a number',
  );
  t.is(
    explainDeath('(node:1) [DEP0040] DeprecationWarning: old\n(Use `node --trace-deprecation ...`)\n'),
    '',
  );
  const fatal = { level: 'fatal', role: 's3', err: { type: 'TypeError', message: 'broken', stack: 'at x' } };
  t.is(explainDeath(`a warning\n${JSON.stringify(fatal)}\n`), 'TypeError: broken');
  t.is(explainDeath('{"level":"fatal","err":{"type":"Type'), '{"level":"fatal","err":{"type":"Type');
});
