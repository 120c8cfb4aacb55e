import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';

// This file is compiled to dist/test/scripts/; the bootstrap is plain JavaScript and stays in scripts/.
const scripts = fileURLToPath(new URL('../../../scripts', import.meta.url));

type Run = (
  args: string[],
  env?: Record<string, string>,
) => Promise<{ code: number; stdout: string; stderr: string }>;

interface Project {
  root: string;
  run: Run;
  /** The calls of npm, tsc, oxlint, oxfmt, ava and apt-get, in order. */
  calls: () => string[];
  write: (path: string, text: string, mode?: number) => void;
}

/** A program that records its call, and then does what a test needs. */
const recordingProgram = (name: string, code = ''): string => `#!${process.execPath}
const fs = require('node:fs');
fs.appendFileSync(process.env.CALLS, ['${name}', ...process.argv.slice(2)].join(' ') + '\\n');
${code}`;

const lockText = JSON.stringify({
  packages: { '': {}, 'node_modules/x': { version: '1.0.0', integrity: 'sha512-x' } },
});
const commandCode = `console.log(JSON.stringify({ argv: process.argv.slice(1) }));`;

/**
 * A project with the real bootstrap, and small programs instead of npm and the packages that npm installs.
 */
function makeProject(t: ExecutionContext): Project {
  const root = mkdtempSync(join(tmpdir(), 'mg-bootstrap-'));
  t.teardown(() => rmSync(root, { recursive: true, force: true }));
  const write = (path: string, text: string, mode = 0o644): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text, { mode });
  };
  cpSync(join(scripts, 'bootstrap.mjs'), join(root, 'scripts/bootstrap.mjs'));
  cpSync(join(scripts, 'bootstrap'), join(root, 'scripts/bootstrap'), { recursive: true });
  write('package.json', '{"type":"module"}');
  write('bin/package.json', '{}');
  write('package-lock.json', lockText);
  write('tsconfig.json', '{"include":["api","test"]}');
  write('tsconfig.build.json', '{"include":["api"]}');
  write('api/main.ts', '1');
  write('dist/test/api/chat.test.js', '');
  for (const name of ['redis-server', 'prometheus', 'promtool'])
    write(`bin/${name}`, recordingProgram(name), 0o755);
  const bins = {
    typescript: recordingProgram(
      'tsc',
      `fs.mkdirSync('dist/scripts/admin', { recursive: true });
      fs.writeFileSync('dist/package.json', '{"type":"module"}');
      fs.writeFileSync('dist/scripts/admin/main.js', ${JSON.stringify(commandCode)});`,
    ),
    oxlint: recordingProgram(
      'oxlint',
      `if (fs.existsSync('bad-lint')) { console.log('a.ts: wrong'); process.exit(1); }
      const look = () => {
        if (!/^ava /m.test(fs.readFileSync(process.env.CALLS, 'utf8'))) return setTimeout(look, 20);
        fs.appendFileSync(process.env.CALLS, 'lint has seen the tests begin\\n');
      };
      if (fs.existsSync('slow-lint')) look();`,
    ),
    oxfmt: recordingProgram('oxfmt'),
    ava: recordingProgram(
      'ava',
      `console.log(fs.existsSync('ava-says') ? fs.readFileSync('ava-says', 'utf8') : '  3 tests passed');
      process.exitCode = fs.existsSync('ava-says') ? 1 : 0;`,
    ),
  };
  // A fake `npm ci`, which writes the packages from strings, without a network.
  write('packages.json', JSON.stringify(bins));
  write(
    'bin/npm',
    recordingProgram(
      'npm',
      `if (fs.existsSync('bad-npm')) { console.log('npm noise'); console.error('npm error E404'); process.exit(1); }
      console.log('npm noise');
      fs.rmSync('node_modules', { recursive: true, force: true });
      for (const [name, text] of Object.entries(JSON.parse(fs.readFileSync('packages.json', 'utf8')))) {
        fs.mkdirSync('node_modules/' + name, { recursive: true });
        fs.writeFileSync('node_modules/' + name + '/package.json', JSON.stringify({ bin: 'bin.js' }));
        fs.writeFileSync('node_modules/' + name + '/bin.js', text);
      }
      const lock = JSON.parse(fs.readFileSync('package-lock.json', 'utf8'));
      delete lock.packages[''];
      fs.writeFileSync('node_modules/.package-lock.json', JSON.stringify(lock));`,
    ),
    0o755,
  );
  const callsPath = join(root, 'calls');
  const run: Run = (args, env = {}) =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, [join(root, 'scripts/bootstrap.mjs'), ...args], {
        cwd: tmpdir(),
        env: { PATH: join(root, 'bin'), CALLS: callsPath, ...env },
      });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
      child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
      child.on('close', (code) => resolve({ code: code ?? -1, stdout, stderr }));
    });
  const calls = (): string[] =>
    existsSync(callsPath) ? readFileSync(callsPath, 'utf8').trim().split('\n') : [];
  return { root, run, calls, write };
}

const buildProduct = 'tsc -p tsconfig.build.json';
const install = 'npm ci --include=dev --include=optional --no-audit --no-fund --loglevel=error';

test('a fresh clone is installed and built, and the command runs with its own arguments', async (t) => {
  const { root, run, calls } = makeProject(t);
  const { code, stdout, stderr } = await run(['admin', 'account', 'list', '--json']);
  t.is(code, 0);
  t.deepEqual(calls(), [install, buildProduct]);
  // stdout contains only the output of the command, and the output of npm is not shown at all.
  t.deepEqual(JSON.parse(stdout), {
    argv: [join(root, 'dist/scripts/admin/main.js'), 'account', 'list', '--json'],
  });
  t.regex(stderr, /^Installing packages …\nInstalling packages: [\d.]+ s\nBuilding …\nBuilding: [\d.]+ s\n$/);
});

test('if the installation and build are up to date, they are not repeated and nothing is printed about them', async (t) => {
  const { run, calls } = makeProject(t);
  await run(['admin']);
  const { stderr } = await run(['admin']);
  t.is(stderr, '');
  t.is(calls().length, 2);
});

test('a changed, added or removed source triggers a build, even if its modification time is old', async (t) => {
  const { root, run, calls, write } = makeProject(t);
  await run(['admin']);
  write('api/new.ts', '1');
  utimesSync(join(root, 'api/new.ts'), new Date(0), new Date(0));
  await run(['admin']);
  // The compiled output of a removed source is deleted, too.
  write('dist/api/new.js', '1');
  write('dist/api/new.js.map', '{}');
  rmSync(join(root, 'api/new.ts'));
  await run(['admin']);
  t.deepEqual(calls(), [install, buildProduct, buildProduct, buildProduct]);
  t.false(existsSync(join(root, 'dist/api/new.js')));
});

test('the pages are built next to the product, and again only if their sources have changed', async (t) => {
  const { run, calls, write } = makeProject(t);
  write('web/main.tsx', "import { sitePages } from '../api/pages/site/site-pages.ts';");
  write('api/pages/site/site-pages.ts', '1');
  write(
    'scripts/bootstrap/build-web.mjs',
    `import fs from 'node:fs';
    if (fs.existsSync('bad-web')) { console.log('main.tsx: wrong'); process.exit(1); }
    fs.mkdirSync('dist/web', { recursive: true });
    fs.appendFileSync(process.env.CALLS, 'build-web\\n');`,
  );
  const countBuilds = (): number => calls().filter((call) => call === 'build-web').length;
  await run(['admin']);
  await run(['admin']);
  t.is(countBuilds(), 1);
  // The server and the pages share this list.
  write('api/pages/site/site-pages.ts', '2');
  write('web/generated/api.d.ts', 'types');
  await run(['admin']);
  t.is(countBuilds(), 2);
  write('bad-web', '');
  write('web/main.tsx', '3');
  const { code, stderr } = await run(['admin']);
  t.is(code, 1);
  t.regex(stderr, /main\.tsx: wrong\n\nThe pages could not be built/);
});

test('a changed lock file triggers an installation; packages that were installed by hand are not installed again', async (t) => {
  const { root, run, calls, write } = makeProject(t);
  await run(['admin']);
  write('package-lock.json', lockText.replace('1.0.0', '1.0.1'));
  await run(['admin']);
  t.deepEqual(calls(), [install, buildProduct, install, buildProduct]);
  rmSync(join(root, 'node_modules/.bootstrap-stamp'));
  await run(['admin']);
  t.is(calls().length, 4);
  // Optional packages for other platforms are never installed, so this triggers no installation.
  const optional = { version: '2.0.0', optional: true };
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, object>;
  };
  write(
    'package-lock.json',
    JSON.stringify({ packages: { ...lock.packages, 'node_modules/darwin': optional } }),
  );
  await run(['admin']);
  t.false(calls().slice(4).includes(install));
});

test('if npm fails, its output is shown, without a stack trace', async (t) => {
  const { run, write } = makeProject(t);
  write('bad-npm', '');
  const { code, stdout, stderr } = await run(['admin']);
  t.is(code, 1);
  t.is(stdout, '');
  t.regex(stderr, /npm error E404\n\n"npm ci" failed/);
  t.notRegex(stderr, /\n\s+at /);
});

test('a build without the packages of the embedded servers fails and lists them', async (t) => {
  const { run, calls, write } = makeProject(t);
  write('package.json', '{"type":"module","optionalDependencies":{"typescript":"*","lmdb":"*"}}');
  const { code, stderr } = await run(['admin']);
  t.is(code, 1);
  t.deepEqual(calls(), [install]);
  t.regex(
    stderr,
    /\nThe build needs all packages, and these are not installed: lmdb\. Run "npm ci" without --omit\.\n$/,
  );
});

test('if two commands start on a fresh clone, it is installed and built once', async (t) => {
  const { run, calls } = makeProject(t);
  const results = await Promise.all([run(['admin']), run(['admin'])]);
  t.deepEqual(
    results.map(({ code }) => code),
    [0, 0],
  );
  t.deepEqual(calls(), [install, buildProduct]);
});

test('a lock does not block other commands if its holder is dead', async (t) => {
  const { root, run, write } = makeProject(t);
  const dead = spawn(process.execPath, ['-e', '']);
  await new Promise((resolve) => dead.on('close', resolve));
  write('dist/.bootstrap.lock', String(dead.pid));
  t.is((await run(['admin'])).code, 0);
  t.false(existsSync(join(root, 'dist/.bootstrap.lock')));
});

test('if Redis is needed and cannot be installed, one sentence explains how to get it', async (t) => {
  const { root, run, calls } = makeProject(t);
  rmSync(join(root, 'bin/redis-server'));
  const { code, stderr } = await run(['bench']);
  t.is(code, 1);
  t.regex(stderr, /No Redis found: install Redis 7 or later .* or set REDIS_URL\.\n$/);
  // No local Redis is needed if Redis is on another host, or if the command does not use Redis.
  await run(['bench'], { REDIS_URL: 'redis://10.0.0.1' });
  await run(['admin']);
  t.deepEqual(calls(), [install, buildProduct]);
});

const onDebianAsRoot = existsSync('/etc/debian_version') && process.getuid?.() === 0 ? test : test.skip;
onDebianAsRoot('root on Debian gets Redis by apt-get, without the service that comes with it', async (t) => {
  const { root, run, calls, write } = makeProject(t);
  rmSync(join(root, 'bin/redis-server'));
  const server = JSON.stringify(join(root, 'bin/valkey-server'));
  const install = `if (process.argv[2] === 'install') fs.writeFileSync(${server}, '', { mode: 0o755 });`;
  write('bin/apt-get', recordingProgram('apt-get', install), 0o755);
  // Fake programs, so that the test does not affect services of this machine.
  for (const name of ['service', 'systemctl']) write(`bin/${name}`, recordingProgram(name), 0o755);
  await run(['test']);
  t.deepEqual(calls().slice(1, 3), [
    'apt-get update -q',
    'apt-get install -y --no-install-recommends redis-server',
  ]);
  t.regex(calls()[3] ?? '', /^(service redis-server stop|systemctl disable --now redis-server)$/);
});

onDebianAsRoot(
  'for root on Debian, npm test installs a browser with apt-get; other commands do not',
  async (t) => {
    const { root, run, calls, write } = makeProject(t);
    const browser = JSON.stringify(join(root, 'bin/chromium'));
    const install = `if (process.argv[2] === 'install') fs.writeFileSync(${browser}, '', { mode: 0o755 });`;
    write('bin/apt-get', recordingProgram('apt-get', install), 0o755);
    await run(['admin']);
    await run(['test']);
    await run(['test']);
    t.deepEqual(
      calls().filter((call) => call.startsWith('apt-get')),
      ['apt-get update -q', 'apt-get install -y --no-install-recommends chromium'],
    );
  },
);

onDebianAsRoot(
  'for root on Debian, npm test extracts Prometheus from its package, without installing it',
  async (t) => {
    const { root, run, calls, write } = makeProject(t);
    write('bin/chromium', recordingProgram('chromium'), 0o755);
    for (const name of ['prometheus', 'promtool']) rmSync(join(root, 'bin', name));
    const download = `if (process.argv[2] === 'download') fs.writeFileSync('prometheus.deb', '');`;
    write('bin/apt-get', recordingProgram('apt-get', download), 0o755);
    const extract = `const bin = process.argv[4] + '/usr/bin/';
      fs.mkdirSync(bin, { recursive: true });
      for (const name of ['prometheus', 'promtool']) fs.writeFileSync(bin + name, '');`;
    write('bin/dpkg-deb', recordingProgram('dpkg-deb', extract), 0o755);
    await run(['admin']);
    await run(['test']);
    await run(['test']);
    t.deepEqual(
      calls().filter((call) => call.startsWith('apt-get')),
      ['apt-get update -q', 'apt-get download -q prometheus'],
    );
    t.true(existsSync(join(root, '.cache/prometheus/usr/bin/promtool')));
    t.deepEqual(readdirSync(join(root, '.cache')), ['prometheus']);
  },
);

test('if no browser can be installed, one sentence reports it and the tests still run', async (t) => {
  const { run, write } = makeProject(t);
  const missing = await run(['test']);
  t.is(missing.code, 0);
  t.regex(missing.stderr, /^No browser found: install Chromium or Chrome,.*\.$/m);
  write('bin/apt-get', recordingProgram('apt-get', `console.error('no network'); process.exit(100);`), 0o755);
  t.is((await run(['test'])).code, 0);
  write('bin/google-chrome', recordingProgram('google-chrome'), 0o755);
  t.notRegex((await run(['test'])).stderr, /browser/);
});

/** The one group of the project's one short test. */
const shortGroup = '--concurrency=2 --no-worker-threads dist/test-groups/group-1.test.js';

test('npm test lints, checks the format and runs every test; its last line is the totals', async (t) => {
  const { run, calls } = makeProject(t);
  const { code, stdout } = await run(['test']);
  t.is(code, 0);
  t.deepEqual(calls().slice(2).toSorted(), [
    `ava --timeout=120s ${shortGroup}`,
    'oxfmt --check',
    'oxlint --type-aware --deny-warnings',
  ]);
  t.is(stdout, '  3 tests passed\n3 passed, 0 failed\n');
});

test('with options for ava, test files do not share processes', async (t) => {
  const { run, calls } = makeProject(t);
  await run(['test', '--match=a*']);
  t.is(calls().at(-1), 'ava --timeout=120s --match=a* dist/test/api/chat.test.js');
});

test('a named test is run alone, from its compiled file', async (t) => {
  const { run, calls } = makeProject(t);
  await run(['test', 'test/api/chat.test.ts', '--match=a*']);
  t.deepEqual(calls().slice(2), ['ava --timeout=120s --match=a* dist/test/api/chat.test.js']);
});

test('lint and format check run in parallel with the tests', async (t) => {
  const { run, calls, write } = makeProject(t);
  write('slow-lint', '');
  const { code, stdout } = await run(['test']);
  t.is(code, 0);
  t.true(calls().includes('lint has seen the tests begin'));
  t.is(stdout.trim().split('\n').at(-1), '3 passed, 0 failed');
});

const deaths = 'dist/test/crash/random-deaths.test.js';
const attacks = 'dist/test/hostile/all-attacks.test.js';
const orphans = 'dist/test/crash/orphans.test.js';
const load = 'dist/test/load/many-callers.test.js';

test('npm test does not run the long suites', async (t) => {
  const { root, run, calls, write } = makeProject(t);
  for (const path of [deaths, attacks, orphans, load, 'dist/test/real/streams.test.js']) write(path, '');
  const { stdout } = await run(['test']);
  t.deepEqual(
    calls().filter((call) => call.startsWith('ava')),
    [`ava --timeout=120s ${shortGroup}`],
  );
  const group = readFileSync(join(root, 'dist/test-groups/group-1.test.js'), 'utf8');
  t.regex(group, /"label": "api › chat"/);
  t.notRegex(group, /random-deaths|streams/);
  t.is(stdout.trim().split('\n').at(-1), '3 passed, 0 failed');
});

test('npm test -- --all also runs the long suites, those that wait next to the others, and --long the longest after those', async (t) => {
  const { root, run, calls, write } = makeProject(t);
  const headers = 'dist/test/hostile/long-headers.test.js';
  for (const path of [deaths, attacks, orphans, headers, load]) write(path, '');
  const { stdout } = await run(['test', '--all']);
  const runs = (): string[] => calls().filter((call) => call.startsWith('ava'));
  const readGroup = (name: string): string =>
    readFileSync(join(root, `dist/test-groups/${name}.test.js`), 'utf8');
  const groups = [
    'ava --timeout=120s --concurrency=1 --no-worker-threads dist/test-groups/waiting-1.test.js',
    'ava --timeout=120s --concurrency=2 --no-worker-threads dist/test-groups/group-1.test.js dist/test-groups/group-2.test.js',
  ];
  t.deepEqual(runs().toSorted(), groups);
  t.regex(readGroup('waiting-1'), /"label": "crash › orphans"/);
  t.regex(readGroup('group-1'), /"label": "hostile › long-headers"/);
  t.regex(readGroup('group-2'), /"label": "api › chat"/);
  t.notRegex(
    ['waiting-1', 'group-1', 'group-2'].map(readGroup).join(''),
    /random-deaths|all-attacks|many-callers/,
  );
  t.true(calls().some((call) => call.startsWith('oxlint')));
  t.is(stdout.trim().split('\n').at(-1), '6 passed, 0 failed');
  await run(['test', '--long']);
  t.deepEqual(runs().slice(2, 4).toSorted(), groups);
  t.deepEqual(runs().slice(4), [
    `ava --timeout=120s --concurrency=2 ${load}`,
    `ava --timeout=120s --concurrency=2 ${deaths} ${attacks}`,
  ]);
});

test('npm test -- --long finally runs the tests on real stores, reports unavailable stores, and adds up all results', async (t) => {
  const { run, calls, write } = makeProject(t);
  write('dist/test/real/streams.test.js', '');
  const { stdout, stderr } = await run(['test', '--long']);
  const [first, last, ...more] = calls().filter((call) => call.startsWith('ava'));
  t.deepEqual(more, []);
  t.is(first, `ava --timeout=120s ${shortGroup}`);
  t.true(last!.includes(' dist/test/real/*.test.js '), last);
  t.regex(stderr, /^Real stores: none; not: a Redis Cluster \(.+\), no mongod: .+, S3 \(.+\)\.$/m);
  t.is(stdout.trim().split('\n').at(-1), '6 passed, 0 failed');
});

test('the tests on real stores can be run alone, all or by name', async (t) => {
  const { run, calls, write } = makeProject(t);
  write('dist/test/real/streams.test.js', '');
  const { code, stdout } = await run(['test:real', 'test/real/streams.test.ts']);
  t.is(code, 0);
  t.is(stdout.trim().split('\n').at(-1), '3 passed, 0 failed');
  const runs = (): string[] => calls().filter((call) => call.startsWith('ava'));
  t.deepEqual(runs(), ['ava --timeout=120s dist/test/real/streams.test.js']);
  await run(['test:real']);
  t.true(runs().length > 2, 'without a file name, all tests run, in several parts');
});

test('tests that share a Redis run one by one', async (t) => {
  const { run, calls } = makeProject(t);
  const { stderr } = await run(['test', 'test/api/chat.test.ts'], { REDIS_URL: 'redis://127.0.0.1:1' });
  t.is(calls().at(-1), 'ava --timeout=120s dist/test/api/chat.test.js --serial --concurrency=1');
  t.regex(stderr, /REDIS_URL is set/);
});

test('failed tests and failed checks both count as failed', async (t) => {
  const { run, write } = makeProject(t);
  write(
    'ava-says',
    '  ✔ a › one\n  ✔ a › two\n  ✘ [fail]: a › three\n  ─\n\n  a › three\n\n  Why.\n\n  ─\n\n  1 test failed\n  1 uncaught exception\n',
  );
  write('bad-lint', '');
  const { code, stdout, stderr } = await run(['test']);
  t.is(code, 1);
  t.is(stdout.trim().split('\n').at(-1), '2 passed, 3 failed');
  t.regex(stderr, /a\.ts: wrong\n\nThe lint failed\./);
  t.regex(
    stderr,
    /The lint failed; see its output further up\.\n\na › three\n\n {2}Why\.\n\nFailed: a › three\n$/,
  );
});

test('a failed build counts as one failure', async (t) => {
  const { run, write } = makeProject(t);
  write('bad-npm', '');
  const { code, stdout } = await run(['test']);
  t.is(code, 1);
  t.is(stdout, '0 passed, 1 failed\n');
});

test('an unknown command prints the known ones', async (t) => {
  const { run } = makeProject(t);
  const { code, stderr } = await run(['strat']);
  t.is(code, 1);
  t.regex(stderr, /^Usage: .*start\|test\|test:real\|api/);
});
