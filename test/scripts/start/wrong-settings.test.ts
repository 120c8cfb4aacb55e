import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { dist } from '../../../scripts/start/paths.ts';
import { makeFolder } from './fake-parts.ts';

interface Refusal {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `npm start` with a setting that a user can get wrong. */
async function start(
  t: ExecutionContext,
  env: Record<string, string>,
  args: readonly string[],
): Promise<Refusal> {
  const childEnv = { PATH: process.env['PATH'], DATA_DIR: join(makeFolder(t), 'data'), PORT: '0', ...env };
  const child = spawn(process.execPath, [dist('scripts/start/main.js'), ...args], {
    env: childEnv,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { code: code as number | null, stdout, stderr };
}

/** Asserts that the start fails before any part runs, and prints one line, not a stack trace. */
async function assertRefused(
  t: ExecutionContext,
  env: Record<string, string>,
  message: RegExp,
  args: readonly string[] = [],
): Promise<void> {
  const { code, stdout, stderr } = await start(t, env, args);
  const what = JSON.stringify(env);
  t.is(code, 1, what);
  t.is(stdout, '', what);
  t.regex(stderr, message, what);
  t.regex(stderr, /^[^\n]+\n$/, what);
}

test('an unusable DATA_DIR is reported, with the reason', async (t) => {
  const folder = makeFolder(t);
  writeFileSync(join(folder, 'file'), '');
  symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling'));
  const advice = 'Fix that, or set DATA_DIR to a folder that this user may write to\\.';
  const assertUnusable = async (path: string, reason: string): Promise<void> =>
    await assertRefused(
      t,
      { DATA_DIR: path },
      new RegExp(`^DATA_DIR is ${path}, which cannot be used: ${reason}\\. ${advice}`),
    );
  await assertUnusable('/dev/null', 'it is not a folder');
  await assertUnusable(join(folder, 'file', 'x'), `${join(folder, 'file')} is not a folder`);
  await assertUnusable(
    join(folder, 'dangling'),
    `${join(folder, 'dangling')} is a link to a missing file or folder`,
  );
  await assertUnusable(join(folder, 'x'.repeat(300)), 'its name is too long');
  // For this path Node's recursive mkdir never returns.
  if (process.platform === 'linux') await assertUnusable('/proc/x/y', '/proc does not accept new folders');
});

test('an unusable file in DATA_DIR is reported, with the reason', async (t) => {
  for (const [name, make] of [
    ['logs', (path: string) => writeFileSync(path, '')],
    ['redis', (path: string) => writeFileSync(path, '')],
    ['secrets.json', (path: string) => mkdirSync(path)],
    ['supervisor.json', (path: string) => mkdirSync(path)],
  ] as const) {
    const folder = makeFolder(t);
    make(join(folder, name));
    const reason = name.endsWith('.json') ? 'it is a folder' : 'it is not a folder';
    const expected = `^${join(folder, name)} \\(in DATA_DIR\\) cannot be used: ${reason}\\.`;
    await assertRefused(t, { DATA_DIR: folder }, new RegExp(expected));
  }
});

for (const [content, reason] of [
  ['', 'it is empty, truncated or not JSON'],
  ['{"masterKey": "abc', 'it is empty, truncated or not JSON'],
  ['null', 'it does not contain a JSON object'],
  ['[]', 'it does not contain a JSON object'],
  ['{"masterKey": 5}', '"masterKey" must be a string'],
  ['{"masterKey": "short"}', '"masterKey" must have at least 32 characters'],
  ['{"mongodbPassword": "two words"}', '"mongodbPassword" must match'],
] as const) {
  test(`secrets.json containing ${content || 'nothing'} is never replaced automatically`, async (t) => {
    const folder = makeFolder(t);
    writeFileSync(join(folder, 'secrets.json'), content);
    const expected = `^${join(folder, 'secrets.json')} is damaged: ${reason}.*\\. Restore it from a copy\\. If there is none, move the file away`;
    await assertRefused(t, { DATA_DIR: folder }, new RegExp(expected));
  });
}

test('a damaged lock file does not block the folder', async (t) => {
  const folder = makeFolder(t);
  writeFileSync(join(folder, 'supervisor.json'), '{"pid": 1');
  writeFileSync(join(folder, 'endpoints.json'), '');
  // The start gets past the lock file, to the next invalid setting.
  await assertRefused(
    t,
    { DATA_DIR: folder, HOST: '10.255.255.1' },
    /^HOST 10\.255\.255\.1 is not an address/,
  );
});

test('an address that the api cannot listen on is reported before anything is started', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await assertRefused(
    t,
    { PORT: String(port) },
    new RegExp(`^Port ${port} of 127\\.0\\.0\\.1 is in use by another program`),
  );
  await assertRefused(
    t,
    { METRICS_PORT: String(port) },
    new RegExp(
      `^Port ${port} of 127\\.0\\.0\\.1 is in use by another program: set METRICS_PORT to a free one`,
    ),
  );
  await assertRefused(
    t,
    { PORT: '9412', METRICS_PORT: '9412' },
    /^PORT and METRICS_PORT are both 9412\. Set one of them to another port\./,
  );
  const advice = 'set HOST to 127\\.0\\.0\\.1 for this machine only';
  await assertRefused(
    t,
    { HOST: '10.255.255.1' },
    new RegExp(`^HOST 10\\.255\\.255\\.1 is not an address of this machine: ${advice}`),
  );
  await assertRefused(t, { HOST: '999.1.1.1' }, /^HOST 999\.1\.1\.1 does not resolve to an address: /);
});

test('an unreadable catalog is reported, with the reason', async (t) => {
  const folder = makeFolder(t);
  const advice = 'Set CATALOG to the path of your catalog file\\.';
  const missing = join(folder, 'none.yaml');
  await assertRefused(
    t,
    { CATALOG: missing },
    new RegExp(`^The catalog ${missing} cannot be read: there is no such file or folder\\. ${advice}`),
  );
  await assertRefused(
    t,
    { CATALOG: folder },
    new RegExp(`^The catalog ${folder} cannot be read: it is a folder\\. ${advice}`),
  );
});

test('workers on demand need a way to ask the api: without METRICS_TOKEN, only connections of this machine may', async (t) => {
  const args = ['--workers', '1..8'];
  await assertRefused(
    t,
    { TRUST_PROXY: 'on' },
    /^--workers 1\.\.8 needs METRICS_TOKEN with TRUST_PROXY=on: /,
    args,
  );
  await assertRefused(
    t,
    { HOST: '10.255.255.1' },
    /^--workers 1\.\.8 needs METRICS_TOKEN with HOST 10/,
    args,
  );
});

test('an unknown option of MONGODB_URL is reported immediately, without the password', async (t) => {
  const env = { MONGODB_URL: 'mongodb://u:hushhush@127.0.0.1:1/?retries=1' };
  await assertRefused(t, env, /^MONGODB_URL is not valid: (?!.*hushhush).*retries/);
});

for (const [entry, message] of [
  ['scripts/start/main.js', /^Unknown option '--help'\. Usage: npm start -- \[--workers [^\n]+\n$/],
  [
    'scripts/start/api-processes.js',
    /^Unknown option '--help'\. Usage: npm run api -- \[--processes 4\]\.[^\n]+\n$/,
  ],
  ['api/main.js', /^Unknown argument "--help": "dist\/api\/main\.js" takes no arguments\.[^\n]+\n$/],
] as const) {
  test(`${entry} reports arguments that it does not know, and starts nothing`, async (t) => {
    const child = spawn(process.execPath, [dist(entry), '--help'], {
      env: { PATH: process.env['PATH'], DATA_DIR: makeFolder(t), PORT: '0' },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    t.teardown(() => child.kill('SIGKILL'));
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    t.is(code, 1);
    t.regex(stderr, message);
  });
}
