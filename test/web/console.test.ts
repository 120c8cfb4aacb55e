import test from 'ava';
import { callAdmin, createToken, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { findAxeProblems, takeScreenshots, usePages, useWebPage, type WebPage } from '../support/web-page.ts';

const pages = usePages(test, consoleOptions);

const enterToken = async ({ page }: WebPage, token: string): Promise<void> => {
  await page.getByRole('textbox', { name: 'Token' }).fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
};

withBrowser('an operator signs in with a token, which is kept nowhere, and out in all tabs', async (t) => {
  const web = await useWebPage(t, pages, { expectedFailures: ['/v1/admin/session'] });
  const { page, context } = web;
  await web.open('/admin/accounts?search=anna');
  await page.getByRole('heading', { name: 'Operator sign-in' }).waitFor();
  t.is(await page.getByRole('navigation', { name: 'Main navigation' }).count(), 0);
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-sign-in');
  await enterToken(web, 'a-wrong-token');
  await page.getByText('This token is not known here').waitFor();
  await enterToken(web, testAdminToken);
  await page.getByRole('heading', { name: 'Accounts' }).waitFor();
  t.is(new URL(page.url()).search, '?search=anna');
  t.false((await context.storageState()).origins.some((one) => JSON.stringify(one).includes(testAdminToken)));
  const [cookie] = (await context.cookies()).filter(({ name }) => name === 'mg_admin');
  t.true(cookie!.httpOnly);
  t.is(cookie!.sameSite, 'Strict');

  const other = await context.newPage();
  await other.goto(`${pages.stack.url}/admin/audit`);
  await other.getByRole('heading', { name: 'Audit' }).waitFor();
  await page.getByRole('button', { name: 'Signed in with the token' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  for (const tab of [page, other]) await tab.getByRole('heading', { name: 'Operator sign-in' }).waitFor();
});

withBrowser('a session that ends with its token is begun again over the page', async (t) => {
  const web = await useWebPage(t, pages, { expectedFailures: ['/v1/admin/'] });
  const { page } = web;
  const token = await createToken(pages.stack, 'short-lived', 'read');
  await web.open('/admin/accounts');
  await enterToken(web, token);
  await page.getByRole('heading', { name: 'Accounts' }).waitFor();
  await callAdmin(pages.stack.url, testAdminToken, 'DELETE', '/tokens/short-lived');
  await page.getByRole('link', { name: 'Audit' }).click();
  await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor();
  await enterToken(web, testAdminToken);
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  t.is(new URL(page.url()).pathname, '/admin/audit');
  await page.getByRole('cell', { name: 'short-lived' }).first().waitFor();
});

withBrowser('what a customer names is found from every page', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const owner = { name: 'Anna Petrova', email: 'anna@example.com' };
  const { body } = await callAdmin<{ id: string; api_key: string }>(
    pages.stack.url,
    testAdminToken,
    'POST',
    '/accounts',
    owner,
  );
  const { id, api_key: apiKey } = body;
  await startConsole(web, pages.stack);
  await web.open('/admin/audit');
  for (const named of [id, 'petrov', 'anna@example.com', apiKey]) {
    await page.keyboard.press('/');
    await page.getByRole('dialog').getByRole('searchbox').fill(named);
    await page.keyboard.press('Enter');
    await page.waitForURL(`${pages.stack.url}/admin/accounts/${id}`);
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('heading', { name: 'Audit' }).waitFor();
  }
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByRole('dialog').getByRole('searchbox').fill('nobody');
  await page.keyboard.press('Enter');
  await page.getByText('Nothing found').waitFor();
  t.deepEqual(await findAxeProblems(web), []);
});

withBrowser(
  'a key or a code in any search field finds its account, and comes into no address and no query',
  async (t) => {
    const web = await useWebPage(t, pages);
    const { page } = web;
    const { id, apiKey } = await pages.stack.createAccount();
    const { body } = await callAdmin<{ codes: string[] }>(pages.stack.url, testAdminToken, 'POST', '/codes', {
      balance: 5,
    });
    const [code] = body.codes as [string];
    const seen: string[] = [];
    page.on('request', (request) => seen.push(decodeURIComponent(request.url())));
    page.on('framenavigated', (frame) => seen.push(decodeURIComponent(frame.url())));
    await startConsole(web, pages.stack);
    const fields = [
      ['/admin/accounts', ['Search accounts']],
      ['/admin/requests', ['Find by request id', 'Account']],
      ['/admin/work?tab=jobs', ['Account', 'Open a job by its id']],
      ['/admin/audit?resource=account', ['Id or name']],
      ['/admin/models', ['Search']],
    ] as const;
    const fieldOf = (name: string) => page.getByRole('searchbox', { name, exact: true });
    for (const [path, names] of fields) {
      await web.open(path);
      for (const [i, name] of names.entries()) {
        await fieldOf(name).fill(`code "${code.toLowerCase()}"`);
        await page
          .getByText(`${code.slice(-4)} (unused)`)
          .nth(i)
          .waitFor();
      }
      await fieldOf(names.at(-1)!).fill(`“${apiKey}”`);
      // A filter by account takes the account, the others open it.
      await page.waitForURL((url) => url.href.includes(id));
    }
    const secrets = [apiKey, code, code.toLowerCase()];
    t.deepEqual(
      seen.filter((url) => secrets.some((secret) => url.includes(secret))),
      [],
    );
  },
);
