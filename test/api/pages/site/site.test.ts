import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import test from 'ava';
import { fetchRaw } from '../../../support/fetch-raw.ts';
import { startOtherApi } from '../../../support/other-api.ts';
import { startStack, type TestStack } from '../../../support/stack.ts';
import { createWebUser } from '../../../support/web-client.ts';

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ workers: [] });
});
test.after.always(() => stack?.close());

const browserAccept = 'text/html,application/xhtml+xml,*/*;q=0.8';

const get = (path: string, headers: Record<string, string> = {}, url = stack.url, method = 'GET') =>
  fetch(`${url}${path}`, { method, headers: { accept: browserAccept, ...headers }, redirect: 'manual' });

const readPage = async (path: string, headers?: Record<string, string>, url?: string): Promise<string> =>
  await (await get(path, headers, url)).text();

const findScript = (page: string): string => /<script type="module" src="([^"]+)"/.exec(page)![1]!;

test('a page is HTML under a strict policy, and is not kept without asking', async (t) => {
  const response = await get('/models');
  t.is(response.status, 200);
  t.is(response.headers.get('content-type'), 'text/html; charset=utf-8');
  t.is(response.headers.get('cache-control'), 'no-cache');
  t.is(response.headers.get('x-content-type-options'), 'nosniff');
  t.is(response.headers.get('x-frame-options'), 'DENY');
  const policy = response.headers.get('content-security-policy') ?? '';
  t.regex(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; /);
  t.regex(policy, /frame-ancestors 'none'$/);
  t.notRegex(policy, /unsafe|https?:/);
  const page = await response.text();
  // Nothing in the page needs an exception from the policy.
  t.notRegex(page, /<style|style="|<script(?! type="module" src=")| on\w+="/);

  // `fetch` asks for gzip.
  const etag = response.headers.get('etag')!;
  const again = await fetchRaw(stack.url, '/models', {
    'if-none-match': etag,
    'accept-encoding': 'gzip',
  });
  t.deepEqual([again.status, again.body.length], [304, 0]);
  const head = await get('/models', {}, stack.url, 'HEAD');
  t.deepEqual([head.status, head.headers.get('etag'), await head.text()], [200, etag, '']);
  t.is((await get('/models?type=chat')).status, 200);
  t.is((await get('/models/some/model')).status, 200);
  const moved = await get('/models/?type=chat');
  t.deepEqual([moved.status, moved.headers.get('location')], [308, '/models?type=chat']);
});

test('an asset is kept for a year, and comes compressed as the browser likes', async (t) => {
  const script = findScript(await readPage('/'));
  const plain = await fetchRaw(stack.url, script, { 'accept-encoding': 'identity' });
  t.is(plain.status, 200);
  t.is(plain.headers['content-type'], 'text/javascript; charset=utf-8');
  t.is(plain.headers['cache-control'], 'public, max-age=31536000, immutable');
  t.is(plain.headers['x-content-type-options'], 'nosniff');
  const brotli = await fetchRaw(stack.url, script, { 'accept-encoding': 'gzip, br' });
  t.is(brotli.headers['content-encoding'], 'br');
  t.true(brotliDecompressSync(brotli.body).equals(plain.body));
  const gzip = await fetchRaw(stack.url, script, { 'accept-encoding': 'gzip' });
  t.is(gzip.headers['content-encoding'], 'gzip');
  t.true(gunzipSync(gzip.body).equals(plain.body));
  t.is((await fetchRaw(stack.url, script, { 'if-none-match': plain.headers.etag! })).status, 304);
});

test('only files of the build are served, whatever the path says', async (t) => {
  for (const path of [
    '/assets/',
    '/assets/nothing.js',
    '/assets/..%2f..%2f..%2fpackage.json',
    '/assets/%2e%2e/.vite/manifest.json',
    '/assets/..%5c..%5cpackage.json',
    `${findScript(await readPage('/'))}.br`,
    '/.vite/manifest.json',
  ])
    t.is((await fetchRaw(stack.url, path, {})).status, 404, path);
});

test('an unknown path is a page for browsers, and an error for programs', async (t) => {
  const page = await get('/nothing-here');
  t.is(page.status, 404);
  t.is(page.headers.get('content-type'), 'text/html; charset=utf-8');
  t.regex(await page.text(), /<title>Страница не найдена · /);
  for (const [path, accept] of [
    ['/nothing-here', '*/*'],
    ['/nothing-here', 'application/json'],
    ['/v1/nothing-here', browserAccept],
    ['/v1', browserAccept],
    ['/files/nothing-here', browserAccept],
  ] as const) {
    const response = await get(path, { accept });
    t.is(response.status, 404, path);
    t.is(((await response.json()) as { error: { code: string } }).error.code, 'not_found', path);
  }
  t.is((await get('/models', {}, stack.url, 'POST')).status, 404);
});

test('the page knows the session from the cookies, and private pages ask for it', async (t) => {
  const hint = (page: string): string => /<meta name="session" content="(\w+)"/.exec(page)![1]!;
  t.is(hint(await readPage('/')), 'none');
  const { client } = await createWebUser(stack, 'pages@example.com');
  const active = await get('/keys', { cookie: client.cookieHeader });
  t.is(active.headers.get('cache-control'), 'no-store');
  t.is(hint(await active.text()), 'active');
  const refresh = client.cookieHeader.replace('mg_session=', 'other=');
  t.is(hint(await readPage('/keys', { cookie: refresh })), 'expired');
  t.is(hint(await readPage('/', { cookie: 'mg_session=forged' })), 'none');
  const asked = await get('/requests?model=a%20b&page=2');
  t.is(asked.status, 302);
  t.is(asked.headers.get('location'), '/sign-in?next=%2Frequests%3Fmodel%3Da%2520b%26page%3D2');
});

test('language and theme are those that were chosen, or those of the browser', async (t) => {
  t.regex(await readPage('/status'), /<html lang="ru" >/);
  t.regex(await readPage('/status', { 'accept-language': 'en-GB, en' }), /<html lang="en" >/);
  const chosen = await readPage('/status', { cookie: 'mg_language=en; mg_theme=dark' });
  t.regex(chosen, /<html lang="en" data-theme="dark">/);
  t.regex(chosen, /<meta name="color-scheme" content="dark"/);
  t.regex(chosen, /<title>Status · Model Gateway<\/title>/);
});

test('the documentation is in the page without scripts, in the language of the page, and can be searched', async (t) => {
  const english = { 'accept-language': 'en' };
  const reference = await readPage('/docs', english);
  t.regex(reference, /<main id="main"[^]*<article class="operation" id="createChatCompletion">/);
  t.regex(
    await readPage('/docs/errors', english),
    /<title>Errors · Model Gateway<\/title>[^]*<h1>Errors<\/h1>/,
  );
  t.regex(await readPage('/docs/errors'), /<html lang="ru" >[^]*<h1>Ошибки<\/h1>/);
  t.is((await get('/docs/nothing-here')).status, 404);
  const found = await get('/docs/search.json?language=ru', { accept: '*/*' });
  t.is(found.headers.get('content-type'), 'application/json; charset=utf-8');
  t.is(found.headers.get('cache-control'), 'no-cache');
  const entries = (await found.json()) as { href: string; title: string }[];
  t.true(entries.some(({ href, title }) => href === '/docs/errors' && title === 'Ошибки'));
  // A query is bounded before it is parsed, as everywhere.
  t.is((await get(`/docs/search.json?${'a&'.repeat(64)}language=ru`, { accept: '*/*' })).status, 422);
  const etag = found.headers.get('etag')!;
  const again = { 'if-none-match': etag, 'accept-encoding': 'gzip' };
  t.is((await fetchRaw(stack.url, '/docs/search.json?language=ru', again)).status, 304);
});

test('an operator brands the pages', async (t) => {
  const logo = join(stack.dir, 'logo.svg');
  await writeFile(logo, '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
  const url = await startOtherApi(t, stack, {
    BRAND_NAME: 'Нейро & Ко',
    BRAND_LOGO: logo,
    BRAND_COLOR: '#FF0',
    TERMS_URL: 'https://example.com/terms',
    FOOTER_TEXT: 'ООО «Пример»',
    S3_PUBLIC_URL: 'https://cdn.example.com/bucket',
  });
  const response = await get('/', {}, url);
  t.regex(
    response.headers.get('content-security-policy') ?? '',
    /img-src 'self' blob: data: https:\/\/cdn\.example\.com;/,
  );
  const page = await response.text();
  t.regex(page, /<title>Нейро &amp; Ко<\/title>/);
  const config = (await (await get('/v1/web/config', {}, url)).json()) as Record<string, string>;
  t.like(config, { name: 'Нейро & Ко', terms_url: 'https://example.com/terms', footer_text: 'ООО «Пример»' });
  const served = await get(config['logo_url']!, {}, url);
  t.is(served.headers.get('content-type'), 'image/svg+xml');
  t.regex(served.headers.get('content-security-policy') ?? '', /^sandbox; default-src 'none'/);
  const [, style] = /href="(\/assets\/brand-[^"]+)"/.exec(page)!;
  t.regex(await readPage(style!, {}, url), /^:root\{--accent:#[0-9a-f]{6};/);
});

test('PAGES=off serves no page and no asset, while the API is described', async (t) => {
  const url = await startOtherApi(t, stack, { PAGES: 'off' });
  for (const path of [
    '/',
    '/models',
    '/docs',
    '/docs/errors',
    '/docs/search.json',
    findScript(await readPage('/')),
  ]) {
    const response = await get(path, {}, url);
    t.is(response.status, 404, path);
    t.regex(response.headers.get('content-type') ?? '', /json/);
  }
  t.is((await get('/v1/openapi.json', {}, url)).status, 200);
});
