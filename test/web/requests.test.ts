import { readFile } from 'node:fs/promises';
import test from 'ava';
import { withBrowser } from '../support/browser.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  findAxeProblems,
  launchPages,
  signIn,
  takeScreenshots,
  useWebPage,
  type PageBrowser,
} from '../support/web-page.ts';

let stack: TestStack;
let browser: PageBrowser;
test.before(async () => {
  [stack, browser] = await Promise.all([startStack(), launchPages()]);
});
test.after.always(async () => {
  await browser?.close();
  await stack?.close();
});

withBrowser(
  'a request is found by its id, with its cost, and the log is saved as it is filtered',
  async (t) => {
    const web = await useWebPage(t, browser, stack);
    const { page } = web;
    const { client } = await signIn(web, stack);
    const { apiKey } = await stack.createAccount();
    t.is(
      (await client.request('POST', '/api-accounts/link', { api_key: apiKey, label: 'Main' })).status,
      201,
    );
    const ids: string[] = [];
    for (const content of ['one two three', 'four five six seven']) {
      const body = { model: 'demo-echo', messages: [{ role: 'user', content }] };
      const response = await stack.post('/v1/chat/completions', apiKey, body);
      await response.arrayBuffer();
      ids.push(response.headers.get('x-request-id')!);
    }
    await waitFor(
      'both requests to be logged',
      async () => (await stack.mongo.db.collection('request_logs').countDocuments({})) === 2,
    );

    await web.open('/requests');
    await page.getByRole('row').nth(2).waitFor();
    t.deepEqual(await findAxeProblems(web), []);
    await takeScreenshots(web, 'requests');
    await page.getByLabel('Request id').fill(ids[0]!);
    await page.keyboard.press('Enter');
    await page.getByText('Clear the filters').waitFor();
    await waitFor('one row', async () => (await page.getByRole('row').count()) === 2);
    t.true(page.url().endsWith(`?request_id=${ids[0]}`));

    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download as CSV' }).click();
    const lines = (await readFile(await (await downloading).path(), 'utf8')).trim().split('\n');
    t.is(lines.length, 2);
    t.true(lines[1]!.includes(ids[0]!));

    await page.getByRole('row').nth(1).getByRole('button').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(ids[0]!).waitFor();
    await dialog.getByRole('row', { name: /Output tokens/ }).waitFor();
    await takeScreenshots(web, 'request');
    await page.keyboard.press('Escape');
    await page.getByText('Clear the filters').click();
    await page.getByLabel('Outcome').selectOption('error');
    await page.getByText('No request of the last 72 hours matches all filters.').waitFor();
  },
);
