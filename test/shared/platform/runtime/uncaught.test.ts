import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { dist } from '../../../../scripts/start/paths.ts';

/** Every program exits with one `fatal` line at the first unhandled error. */

interface ProcessResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface FatalLine {
  readonly level: string;
  readonly role: string;
  readonly msg: string;
  readonly err: { readonly message: string; readonly stack: string };
}

/**
 * Returns a module for `--import`, which Node.js runs before the code of the program. The module causes an unrelated
 * error as soon as the program handles uncaught exceptions.
 */
const createFaultModule = (fault: string): string => {
  const wait = `const wait = () => process.listenerCount('uncaughtException') > 0 ? strike() : setImmediate(wait); wait();`;
  return `data:text/javascript,${encodeURIComponent(`function strike() { ${fault} } ${wait}`)}`;
};
const throwingModule = createFaultModule(`throw new Error('out of nowhere');`);
const rejectingModule = createFaultModule(`Promise.reject(new Error('out of nowhere'));`);

async function run(
  t: ExecutionContext,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<ProcessResult> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const child = spawn(process.execPath, args, {
    // No server listens at these addresses, so a program that does not exit on the error keeps waiting for them.
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: dir,
      REDIS_URL: 'redis://127.0.0.1:1',
      MONGODB_URL: 'mongodb://127.0.0.1:1',
      S3_ENDPOINT: 'http://127.0.0.1:1',
      AWS_ACCESS_KEY_ID: 'key',
      AWS_SECRET_ACCESS_KEY: 'secret',
      MASTER_KEY: 'test-master-key-0123456789abcdef0123456789',
      CATALOG: fileURLToPath(new URL('../../../../../catalog.yaml', import.meta.url)),
      LOG_LEVEL: 'silent',
      PORT: '0',
      ...env,
    },
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

function readFatal(output: string): FatalLine[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{"level":"fatal"'));
  return lines.map((line) => JSON.parse(line) as FatalLine);
}

const programs: readonly { role: string; entry: string; args?: string[]; log?: 'stdout' }[] = [
  { role: 'api', entry: 'api/main.js', log: 'stdout' },
  { role: 'worker', entry: 'workers/main.js', log: 'stdout' },
  { role: 'supervisor', entry: 'scripts/start/main.js' },
  { role: 'mongodb', entry: 'scripts/embedded/mongo/main.js', args: ['--dir', 'mongo'] },
  { role: 's3', entry: 'scripts/embedded/s3/main.js', args: ['--dir', 's3'] },
  { role: 'admin', entry: 'scripts/admin/main.js', args: ['queue', 'status'] },
  { role: 'bench', entry: 'scripts/bench/main.js', args: ['--help'] },
  { role: 'bench-load', entry: 'scripts/bench/harness/load/load-generator.js' },
  { role: 'bench-attacker', entry: 'scripts/bench/suites/fairness/attacker.js' },
  { role: 'vendor-simulator', entry: 'scripts/vendor-simulator/main.js', args: ['--port', '0'] },
];

for (const { role, entry, args = [], log = 'stderr' } of programs) {
  for (const [faultModule, what] of [
    [throwingModule, 'uncaught exception'],
    [rejectingModule, 'unhandled rejection'],
  ] as const) {
    test(`the ${role} logs an ${what} with its stack, whatever LOG_LEVEL is, and ends with exit code 1`, async (t) => {
      const result = await run(t, ['--import', faultModule, dist(entry), ...args]);
      t.is(result.code, 1);
      const [line, ...more] = readFatal(result[log]);
      t.deepEqual(more, []);
      t.like(line, { role, msg: what, err: { message: 'out of nowhere' } });
      t.regex(line?.err.stack ?? '', /strike/);
    });
  }
}

const runtime = (file: string): string =>
  JSON.stringify(new URL(`../../../../shared/platform/runtime/${file}.js`, import.meta.url));

test('the fatal line is written even if the log is read slowly', async (t) => {
  const program = `
    import { logUncaught } from ${runtime('log-uncaught')};
    import { createLogger } from ${runtime('logger')};
    // A time limit that the reader does not exceed even on a busy machine.
    logUncaught('test', { fd: 1, maxStandstillMs: 60_000 });
    const log = createLogger('test', 'info');
    for (let i = 0; i < 100; i++) log.info({ text: 'x'.repeat(10_000) }, 'much');
    setImmediate(() => { process.stderr.write('thrown'); throw new Error('out of nowhere'); });`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'pipe' });
  const exited = once(child, 'exit');
  // The test reads the log only after the program has thrown.
  await once(child.stderr, 'data');
  const output = await text(child.stdout);
  t.deepEqual(await exited, [1, null]);
  t.like(readFatal(output)[0], { msg: 'uncaught exception', err: { message: 'out of nowhere' } });
  t.is(output.split('\n').filter((line) => line.includes('"msg":"much"')).length, 100);
});

test('a thrown value that is not an error is logged, and if the report fails, the process still exits', async (t) => {
  const program = (report: string, fault: string): string[] => [
    '--input-type=module',
    '--eval',
    `import { exitOnUncaught } from ${runtime('exit-on-uncaught')};
     exitOnUncaught(${report}); setInterval(() => undefined, 1_000); setImmediate(() => { ${fault} });`,
  ];
  const result = await run(
    t,
    program('({ message }, what) => console.log(what, message)', `throw { answer: 42 };`),
  );
  t.like(result, { code: 1, stdout: 'uncaught exception thrown: { answer: 42 }\n' });
  t.is((await run(t, program(`() => { throw new Error('full'); }`, 'throw new Error();'))).code, 1);
  t.is((await run(t, program(`() => Promise.reject(new Error('full'))`, 'throw new Error();'))).code, 1);
});
