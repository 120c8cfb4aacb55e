import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { testAdminToken } from '../support/admin-api.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { createWebUser } from '../support/web-client.ts';

const run = promisify(execFile);

test('the page is served complete, under the policy of all pages, and is not kept without asking', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const headers = { 'accept-language': 'en' };
  const response = await fetch(`${stack.url}/docs`, { headers });
  t.is(response.status, 200);
  t.is(response.headers.get('content-type'), 'text/html; charset=utf-8');
  t.regex(
    response.headers.get('content-security-policy') ?? '',
    /^default-src 'none'; script-src 'self'; style-src 'self';/,
  );
  t.is(response.headers.get('x-content-type-options'), 'nosniff');
  t.is(response.headers.get('cache-control'), 'no-cache');
  const page = await response.text();
  t.regex(page, /<\/html>\s*$/);
  // Vectors are complete in the OpenAPI document, but abridged on the page.
  t.true(page.includes('… 508 more numbers'));
  t.is(await (await fetch(`${stack.url}/docs`, { headers })).text(), page);
});

test('the OpenAPI document and the page show PUBLIC_URL as the server URL', async (t) => {
  const stack = await useStack(t, { workers: [], env: { PUBLIC_URL: 'https://ai.example/' } });
  const { servers } = (await (await fetch(`${stack.url}/v1/openapi.json`)).json()) as { servers: object[] };
  t.deepEqual(servers, [{ url: 'https://ai.example' }]);
  const page = await (await fetch(`${stack.url}/docs`)).text();
  t.true(page.includes('curl https://ai.example/v1/chat/completions'));
  t.false(page.includes(stack.url));
});

const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };

/** The commands that a reader would copy: the text of the code blocks that start with curl. */
function findCommands(page: string): string[] {
  return [...page.matchAll(/<pre[^>]*><code>(.*?)<\/code><\/pre>/gs)]
    .map(([, code]) =>
      code!.replaceAll(/<[^>]*>/g, '').replaceAll(/&([^;]+);/g, (_, name: string) => entities[name]!),
    )
    .filter((text) => text.startsWith('curl '));
}

// Not every machine with Node has curl.
const withCurl = spawnSync('curl', ['--version']).error === undefined ? test : test.skip;

/** Operations whose examples refer to objects that a fresh server does not have. */
const cannotSucceed =
  /\/admin\/(?:accounts|audit|codes|users|batches|jobs|requests|ledger\/dead)\/|\/admin\/session \\\n {2}-H|\/admin\/jobs\?|\/files\/|\/batches\/|\/users\/redeem|\/jobs\/\w|verify-code|\/sessions\/|\/link |\/api-accounts\/\d/;

/** Writes the session of a new user to a curl cookie file. @returns its CSRF token */
async function writeCookies(stack: TestStack, file: string): Promise<string> {
  const { client } = await createWebUser(stack, `${randomUUID()}@example.com`);
  const lines = Array.from(client.cookies, (cookie) => ['127.0.0.1', 'FALSE', '/', 'FALSE', '0', ...cookie]);
  await writeFile(file, lines.map((line) => `${line.join('\t')}\n`).join(''));
  return client.csrfToken!;
}

withCurl('every curl command on the page works as pasted', async (t) => {
  const stack = await useStack(t, { env: { WEB_CAPTCHA: 'off', ADMIN_TOKEN: testAdminToken } });
  const commands = findCommands(await (await fetch(`${stack.url}/docs`)).text());
  t.true(commands.length >= 10);
  const directory = await mkdtemp(join(tmpdir(), 'mg-docs-'));
  t.teardown(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'requests.jsonl'), '{"custom_id":"1","body":{}}\n');
  for (const command of commands.filter((one) => !cannotSucceed.test(one))) {
    // Commands may change their account or end their session, so each gets its own.
    const { apiKey } = await stack.createAccount();
    const usesSession = command.includes('cookies.txt');
    const csrfToken = usesSession ? await writeCookies(stack, join(directory, 'cookies.txt')) : '';
    const options = `--silent --show-error --fail-with-body --write-out '%{http_code}'`;
    const script = `curl() { command curl ${options} "$@"; }\n${command}`;
    const env = {
      PATH: process.env['PATH'] ?? '',
      API_KEY: apiKey,
      ADMIN_TOKEN: testAdminToken,
      CSRF_TOKEN: csrfToken,
    };
    const { stdout } = await run('sh', ['-c', script], { env, cwd: directory, maxBuffer: 8_000_000 });
    t.regex(stdout, /2\d\d$/, command);
  }
});
