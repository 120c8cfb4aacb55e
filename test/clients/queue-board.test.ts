import test from 'ava';
import type { Browser } from 'playwright-core';
import { fillQueues, privateWords } from '../support/board-items.ts';
import { launchBrowser, withBrowser } from '../support/browser.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** The operator's view of the queues, in a real browser. */

const token = 'admin-token-0123456789abcdef0123456789';

let stack: TestStack;
let browser: Browser;
let endRequests: () => Promise<void>;
test.before(async () => {
  [stack, browser] = await Promise.all([
    startStack({ workers: [], env: { ADMIN_TOKEN: token } }),
    launchBrowser(),
  ]);
  endRequests = await fillQueues(stack);
});
test.after.always(async () => {
  await browser?.close();
  await endRequests?.();
  await stack?.close();
});

withBrowser(
  'an operator signs in and sees the queues and their items, and nothing that callers wrote',
  async (t) => {
    const profile = await browser.newContext({ httpCredentials: { username: 'operator', password: token } });
    t.teardown(() => profile.close());
    const page = await profile.newPage();
    const [problems, hosts, bodies]: [string[], Set<string>, Promise<string>[]] = [[], new Set(), []];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) problems.push(message.text());
    });
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('request', (request) => hosts.add(new URL(request.url()).origin));
    page.on('response', (response) => {
      if (response.status() >= 400 && response.status() !== 401)
        problems.push(`${response.status()} ${response.url()}`);
      bodies.push(response.text().catch(() => ''));
    });

    await page.goto(`${stack.url}/admin/queues`);
    const overview = page.getByRole('link', { name: 'image-bulk' }).first();
    await overview.waitFor();
    for (const name of ['image', 'embedding', 'mail', 'webhook'])
      await page.getByText(name, { exact: true }).first().waitFor();

    await page.goto(`${stack.url}/admin/queues/queue/image`);
    await page.getByText('prompt_characters').first().waitFor();
    // The page of one item also asks for its logs and relatives.
    await page.locator('a[href*="/queue/image/"]').first().click();
    await page.waitForURL('**/queue/image/*');
    for (const tab of ['Options', 'Logs', 'Error', 'Data'])
      await page.getByText(tab, { exact: true }).first().click();
    await page.getByText('prompt_characters').first().waitFor();
    await page.goto(`${stack.url}/admin/queues/queue/image-bulk?status=failed`);
    await page.getByText('Not shown here').first().waitFor();
    const shown = await page.content();

    t.deepEqual(problems, []);
    t.deepEqual([...hosts], [stack.url]);
    const texts = [...(await Promise.all(bodies)), shown];
    for (const word of privateWords)
      t.false(
        texts.some((text) => text.includes(word)),
        word,
      );
  },
);

withBrowser('a browser without the token asks for it, and sees nothing', async (t) => {
  const profile = await browser.newContext({ httpCredentials: { username: 'operator', password: 'wrong' } });
  t.teardown(() => profile.close());
  const page = await profile.newPage();
  const response = await page.goto(`${stack.url}/admin/queues`);
  t.is(response?.status(), 401);
});
