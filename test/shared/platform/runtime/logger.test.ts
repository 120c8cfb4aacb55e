import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import test from 'ava';

const logger = new URL('../../../../shared/platform/runtime/logger.js', import.meta.url).href;

test('a command that Redis rejected is logged without its arguments', (t) => {
  const program = `
    import { createLogger } from '${logger}';
    const command = { name: 'evalsha', args: ['the-secret'] };
    createLogger('test', 'info').error({ err: Object.assign(new Error('WRONGTYPE'), { command }) }, 'failed');`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  t.regex(stdout, /WRONGTYPE.*evalsha/);
  t.notRegex(stdout, /the-secret/);
});

test('if a Cluster rejects the password, the error is logged without the password', (t) => {
  const program = `
    import { createLogger } from '${logger}';
    const command = { name: 'hello', args: ['3', 'AUTH', 'default', 'the-secret'] };
    const lastNodeError = Object.assign(new Error('WRONGPASS'), { command });
    createLogger('test', 'info').error({ err: Object.assign(new Error('all failed'), { lastNodeError }) }, 'away');`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  t.regex(stdout, /all failed.*WRONGPASS/);
  t.notRegex(stdout, /the-secret/);
});

test('if the log disk is full, the process continues, and can still exit', async (t) => {
  const full = openSync('/dev/full', 'w');
  t.teardown(() => closeSync(full));
  const program = `
    import { createLogger } from '${logger}';
    const log = createLogger('test', 'info');
    let lines = 0;
    const timer = setInterval(() => {
      log.info('a line');
      if ((lines += 1) < 10) return;
      clearInterval(timer);
      process.stderr.write('alive');
      process.exit(7);
    }, 5);`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', full, 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  t.is(await text(child.stderr!), 'alive');
  t.deepEqual(await exited, [7, null]);
});

test('if the log is not read, a limited number of lines is kept, and the number of lost lines is logged', async (t) => {
  const program = `
    import { createLogger } from '${logger}';
    const log = createLogger('test', 'info');
    const filler = 'ж'.repeat(5_000);
    for (let i = 0; i < 4_000; i++) log.info({ filler }, 'much');
    process.stderr.write('written');`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'pipe' });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stderr, 'data');
  const lines = (await text(child.stdout)).trim().split('\n');
  const entries = lines.map((line) => JSON.parse(line) as { level: string; msg: string; lines?: number });
  const kept = entries.filter(({ msg }) => msg === 'much').length;
  const lost = entries.filter(({ msg }) => msg === 'log lines lost');
  // 4 MB of buffered lines at 10 KB each, and what fits into the pipe.
  t.true(kept >= 390 && kept < 450, `${kept} lines`);
  t.is(
    lost.reduce((sum, { lines: count }) => sum + count!, 0),
    4_000 - kept,
  );
});

const prettyProgram = `
  import { createLogger } from '${logger}';
  const log = createLogger('test', 'debug', 'pretty');
  log.debug({ n: 1 }, 'a detail');
  log.info({ apiKey: 'the-secret' }, 'a line');`;

test('pretty lines are text, with all levels and without secrets', (t) => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', prettyProgram], {
    encoding: 'utf8',
  });
  t.deepEqual(
    stdout.split('\n').map((text) => text.slice(9)),
    ['test     debug: a detail n=1', 'test     a line apiKey=[secret]', ''],
  );
});

test('without a format, output that is not a terminal is JSON', (t) => {
  const program = `
    import { createLogger } from '${logger}';
    createLogger('test', 'info').info('a line');`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  t.like(JSON.parse(stdout), { level: 'info', role: 'test', msg: 'a line' });
});

const logUncaught = new URL('../../../../shared/platform/runtime/log-uncaught.js', import.meta.url).href;

/** Logs, and then dies of an error that nothing handles. */
const dyingProgram = `
  import { createLogger } from '${logger}';
  import { logUncaught } from '${logUncaught}';
  logUncaught('test', { fd: 1, format: 'pretty', maxStandstillMs: 60_000 });
  const log = createLogger('test', 'info', 'pretty');
  for (let n = 0; n < 100; n++) log.info({ text: 'x'.repeat(10_000) }, 'much');
  function strike() { throw new Error('out of nowhere'); }
  setImmediate(() => { process.stderr.write('thrown'); strike(); });`;

test('pretty: a process that dies has written all lines before, and the fatal one with its stack', async (t) => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', dyingProgram], { stdio: 'pipe' });
  t.teardown(() => child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  // The log is read only after the program has thrown.
  await once(child.stderr, 'data');
  const lines = (await text(child.stdout)).split('\n');
  t.deepEqual(await exited, [1, null]);
  t.is(lines.filter((line) => line.includes(' much ')).length, 100);
  t.regex(lines[100]!, /fatal: uncaught exception \(out of nowhere\)$/);
  t.regex(lines[101]!, /^ {4}at strike /);
});

test('pretty: a process whose stdout is a closed pipe continues, and can still exit', async (t) => {
  const program = `
    import { createLogger } from '${logger}';
    const log = createLogger('test', 'info', 'pretty');
    process.once('message', () => {
      for (let n = 0; n < 1_000; n++) log.info({ n }, 'a line');
      setTimeout(() => { process.send('alive'); process.exit(7); }, 50);
    });
    process.send('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child, 'message');
  child.stdout!.destroy();
  await once(child.stdout!, 'close');
  const [alive, exited] = [once(child, 'message'), once(child, 'exit')];
  child.send('log');
  t.deepEqual(await alive, ['alive', undefined]);
  t.deepEqual(await exited, [7, null]);
});
