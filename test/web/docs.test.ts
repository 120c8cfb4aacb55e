import test from 'ava';
import { withBrowser } from '../support/browser.ts';
import {
  findAxeProblems,
  maxScriptBytes,
  signIn,
  takeScreenshots,
  usePages,
  useWebPage,
} from '../support/web-page.ts';

const pages = usePages(test);

withBrowser('the documentation is read without scripts, by its own links', async (t) => {
  const context = await pages.browser.newContext({ javaScriptEnabled: false, locale: 'en-US' });
  t.teardown(() => context.close());
  const page = await context.newPage();
  await page.goto(`${pages.stack.url}/docs`);
  t.is(await page.title(), 'API reference · Model Gateway');
  const first = page.locator('#first-chat');
  t.regex(await first.locator('pre.curl').innerText(), /^curl http:\/\/127.+\/v1\/chat\/completions/);
  t.false(await first.locator('pre.python').isVisible());
  await page.getByRole('radio', { name: 'Python' }).check();
  t.true(await first.locator('pre.python').isVisible());
  // Buttons that need scripts are not offered.
  t.false(await page.locator('[data-copy], [data-try]').first().isVisible());
  await page.locator('.docs-wide').getByRole('link', { name: 'Streaming' }).click();
  t.is(new URL(page.url()).pathname, '/docs/streaming');
  t.regex(await page.locator('h1').innerText(), /^Streaming/);
});

withBrowser(
  'an anchor is kept when the application takes over, and the search is used by keyboard alone',
  async (t) => {
    const web = await useWebPage(t, pages);
    const { page } = web;
    const requests: string[] = [];
    page.on('request', (request) => requests.push(new URL(request.url()).pathname));
    await web.open('/docs#createEmbedding');
    await page.getByRole('combobox', { name: 'Search the docs' }).waitFor();
    await page.waitForLoadState('networkidle');
    // What came with the HTML is not loaded again.
    t.is(requests.filter((path) => path === '/docs').length, 1);
    t.true(web.findings.scriptBytes > 10_000 && web.findings.scriptBytes < maxScriptBytes);
    t.log(`${web.findings.scriptBytes} bytes of script`);
    const top = async (id: string): Promise<number> => (await page.locator(`#${id}`).boundingBox())!.y;
    t.true(Math.abs((await top('createEmbedding')) - 80) < 40, String(await top('createEmbedding')));
    const current = page.locator('.docs-wide [aria-current=location]');
    t.is(await current.getAttribute('href'), '/docs#createEmbedding');

    await page.keyboard.press('/');
    await page.keyboard.type('logit_bias');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs#createChatCompletion');
    t.true(Math.abs((await top('createChatCompletion')) - 80) < 40);
    await page.keyboard.press('/');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('webhook signature');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/webhooks*');
    await page.locator('.docs-guide :focus, h1:focus').first().waitFor();
  },
);

withBrowser('code is copied, and its language is chosen for all pages and kept', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await web.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  // A guide is much shorter than the reference.
  await web.open('/docs/first-request');
  const first = page.locator('figure.samples').first();
  await first.getByRole('button', { name: 'Node.js' }).click();
  t.is(await first.getByRole('button', { name: 'Node.js' }).getAttribute('aria-pressed'), 'true');
  await first.getByRole('button', { name: 'Copy' }).click();
  await first.getByRole('button', { name: 'Copied' }).waitFor();
  const copied = await page.evaluate<string>('navigator.clipboard.readText()');
  t.regex(copied, /^import OpenAI from 'openai';\n[^]*client\.chat\.completions\.create\(\{/);
  await web.open('/docs/streaming');
  t.true(await page.getByRole('radio', { name: 'Node.js' }).isChecked());
  t.true(await page.locator('pre.sample.node').first().isVisible());
  t.false(await page.locator('pre.sample.curl').first().isVisible());
});

withBrowser('a chat is sent from the reference with the session, and streams', async (t) => {
  const web = await useWebPage(t, pages, { size: 'phone' });
  const { page } = web;
  const { client } = await signIn(web, pages.stack);
  t.is((await client.request('POST', '/api-accounts/first', {})).status, 201);
  await web.open('/docs#createChatCompletion');
  await page.locator('#createChatCompletion [data-try]').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('It is charged to').waitFor();
  await dialog.getByLabel('Body (JSON)').fill('{"model": ');
  await dialog.getByRole('button', { name: 'Send' }).click();
  await dialog.getByText('Not JSON').waitFor();
  await dialog.getByLabel('Example').selectOption('Response as a stream');
  await dialog.getByRole('button', { name: 'Send' }).click();
  await dialog.getByText('Status 200').waitFor();
  await dialog.locator('pre').getByText('data: [DONE]').waitFor();
  t.regex(await dialog.locator('pre').innerText(), /^data: \{.*chat\.completion\.chunk/);
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await takeScreenshots(web, 'docs-try', false);
});

withBrowser('a visitor reads a guide in both languages, and signs in to try a request', async (t) => {
  const web = await useWebPage(t, pages, { language: 'ru' });
  const { page } = web;
  await web.open('/models');
  await page.evaluate('globalThis.isSame = true');
  await page.getByRole('link', { name: 'Документация' }).first().click();
  await page.getByRole('heading', { name: 'Справочник API' }).waitFor();
  t.is(await page.title(), 'Справочник API · Model Gateway');
  // All operations and their links are of the same elements, and axe takes half a minute for all of them.
  await page.evaluate(`
    for (const operation of document.querySelectorAll('.operation:not(#getProfile)')) operation.remove();
    for (const list of document.querySelectorAll('.docs nav details:not(:first-of-type)')) list.remove();
  `);
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'docs', false);
  await page.locator('.docs-wide').getByRole('link', { name: 'Ошибки' }).first().click();
  await page.waitForURL('**/docs/errors');
  await page.locator('h1:focus').waitFor();
  t.regex(await page.title(), /^Ошибки/);
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'docs-guide');
  await page.getByRole('button', { name: 'Язык и тема' }).click();
  await page.getByRole('menuitemradio', { name: 'English' }).click();
  await page.getByRole('heading', { level: 1, name: 'Errors' }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'API reference' }).waitFor();
  await page.locator('#getProfile [data-try]').click();
  const link = page.getByRole('dialog').getByRole('link', { name: 'Sign in' });
  t.is(await link.getAttribute('href'), '/sign-in?next=%2Fdocs');
  t.is(await page.evaluate('isSame'), true);
});
