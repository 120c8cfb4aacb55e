import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { Redis } from 'ioredis';
import { parseCatalog } from '../../shared/catalog/parse-catalog.ts';
import { readEnvironment } from '../../shared/platform/config/config.ts';
import { readCode } from '../support/mailbox.ts';
import { startTestRedis } from '../support/redis.ts';
import { useStack } from '../support/stack.ts';

const readme = readFileSync('README.md', 'utf8');
const run = promisify(execFile);

/** The curl commands in shell blocks, on their own or assigned to a variable, with continuation lines. */
function findCurlCommands(text: string): string[] {
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```/gms)].map((block) => block[1]!);
  return blocks
    .flatMap((block) => block.replaceAll(/\\\n/g, ' ').split('\n'))
    .filter((line) => /^(ID=\$\()?curl /.test(line));
}

// Skipped if the machine has no curl.
const withCurl = spawnSync('curl', ['--version']).error === undefined ? test : test.skip;

/** A Redis with the user that docs/deployment.md recommends. */
async function useRestrictedRedis(t: ExecutionContext): Promise<{ url: string; operator: Redis }> {
  const server = await startTestRedis();
  t.teardown(() => server.stop());
  const operator = new Redis(server.url);
  t.teardown(() => operator.disconnect());
  const [, name = '', rules = ''] =
    /^ACL SETUSER (\S+) (.*)$/m.exec(readFileSync('docs/deployment.md', 'utf8')) ?? [];
  await operator.acl('SETUSER', name, ...rules.split(' '));
  return { url: server.url.replace('//', `//${name}:password@`), operator };
}

withCurl(
  'every curl line in the README works, with the Redis permissions from docs/deployment.md',
  async (t) => {
    const { url, operator } = await useRestrictedRedis(t);
    const stack = await useStack(t, { mail: true, env: { WEB_CAPTCHA: 'off', REDIS_URL: url } });
    const { apiKey } = await stack.createAccount();
    const commands = findCurlCommands(readme);
    t.is(commands.length, 14);
    const cwd = await mkdtemp(join(tmpdir(), 'mg-readme-'));
    t.teardown(() => rm(cwd, { recursive: true }));
    let id = '';
    const session = { CHALLENGE: '', CODE: '', CSRF: '' };
    for (const command of commands) {
      // The line runs as printed, except that curl fails on a status of 400 or more.
      const script = `curl() { command curl --fail --show-error "$@"; }\n${command}`;
      const env = {
        PATH: process.env['PATH'] ?? '',
        URL: `${stack.url}/v1`,
        KEY: apiKey,
        ID: id,
        ...session,
      };
      if (command.startsWith('ID=')) {
        ({ stdout: id } = await run('sh', ['-c', `${script}; printf %s "$ID"`], { env }));
        continue;
      }
      const { stdout } = await run('sh', ['-c', script], { env, cwd });
      if (command.includes('/web/')) {
        const { challenge_id, csrf_token } = JSON.parse(stdout) as {
          challenge_id?: string;
          csrf_token?: string;
        };
        if (challenge_id !== undefined) {
          session.CHALLENGE = challenge_id;
          session.CODE = readCode(await stack.mailbox!.waitForMail('ann@example.com'));
        }
        session.CSRF = csrf_token ?? session.CSRF;
      }
      if (command.includes('/events')) t.regex(stdout, /^event: (succeeded|completed)$/m);
      else if (command.includes('"stream": true')) t.regex(stdout, /^data: \{.*data: \[DONE\]\n\n$/s);
      else t.notThrows(() => JSON.parse(stdout), command);
    }
    // The ACL log of Redis contains the rejected commands.
    t.deepEqual(await operator.acl('LOG'), []);
    await t.throwsAsync(stack.redis.flushall(), { message: /^NOPERM / });
    await t.throwsAsync(stack.redis.get('of-somebody-else'), { message: /^NOPERM / });
  },
);

/** Maps names to defaults, from the rows of the table. */
const table = new Map(
  [...readme.matchAll(/^\| `([A-Z0-9_]+)` \| (.*?) ?\| /gm)].map(([, name, byDefault]) => [
    name!,
    byDefault!,
  ]),
);

test('the README lists every variable that is read, and no others', (t) => {
  const source = readFileSync('shared/platform/config/config.ts', 'utf8');
  const schema = /const Environment = Type\.Object\(\{\n(.*?)^\}\);/ms.exec(source)?.[1] ?? '';
  const known = [...schema.matchAll(/^ {2}([A-Z0-9_]+):/gm)].map(([, name]) => name!);
  t.true(known.length > 15);
  t.deepEqual([...table.keys()].toSorted(), known.toSorted());
});

test('the README has the right defaults', (t) => {
  for (const [name, value] of Object.entries(readEnvironment({})))
    t.is(table.get(name), `\`${String(value)}\``, name);
});

test('the README mentions only npm scripts that exist', (t) => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> };
  const mentioned = [...readme.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name!);
  t.deepEqual(
    mentioned.filter((name) => scripts[name] === undefined),
    [],
  );
});

test('the upstream in the README is a valid catalog by itself', (t) => {
  const yaml = /^```yaml\n(.*?)^```/ms.exec(readme)?.[1] ?? '';
  const catalog = parseCatalog(yaml, { env: { LAB_KEY: 'key' }, fileName: 'README.md', today: '2026-01-01' });
  t.deepEqual([...catalog.warnings], []);
  t.is(catalog.models[0]?.routes[0]?.upstream.name, 'lab');
});
