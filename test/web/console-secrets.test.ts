import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import {
  findAxeProblems,
  signIn,
  takeScreenshots,
  usePages,
  useWebPage,
  type WebPage,
} from '../support/web-page.ts';

/** Dialogs that show a secret once. */

let accountId: string;
const pages = usePages(test, { env: { ...consoleOptions.env, REVEAL: 'off' } }, async () => {
  ({ id: accountId } = await pages.stack.createAccount());
});

interface Secret {
  readonly name: string;
  /** Of the page. */
  readonly path: () => string;
  readonly show: (page: Page) => Promise<void>;
  /** What its dialog says. */
  readonly text: string;
  readonly copy: string;
}

const create = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();

const secrets: readonly Secret[] = [
  {
    name: 'refill codes',
    path: () => '/admin/codes',
    show: async (page) => {
      await create(page, 'Create codes');
      await page.getByLabel('How many codes').fill('2');
      await page.getByLabel('Roubles each').fill('5');
      await create(page, 'Create');
    },
    text: 'They cannot be shown again',
    copy: 'Copy all',
  },
  {
    name: 'the key of a new account',
    path: () => '/admin/accounts',
    show: async (page) => {
      await create(page, 'Create an account');
      await page.getByRole('dialog').getByRole('button', { name: 'Create an account' }).click();
    },
    text: 'it is not shown again',
    copy: 'Copy the key',
  },
  {
    name: 'a key that was replaced',
    path: () => `/admin/accounts/${accountId}`,
    show: async (page) => {
      await create(page, 'Replace the key');
      await page.getByRole('dialog').getByRole('button', { name: 'Replace the key' }).click();
    },
    text: 'it is not shown again',
    copy: 'Copy the key',
  },
  {
    name: 'an admin token',
    path: () => '/admin/audit?tab=tokens',
    show: async (page) => {
      await create(page, 'Create a token');
      await page.getByLabel('Name').fill(`token-${Math.random()}`);
      await create(page, 'Create');
    },
    text: 'it is shown only here',
    copy: 'Copy the token',
  },
  {
    name: 'a webhook secret that was replaced',
    path: () => `/admin/accounts/${accountId}`,
    show: async (page) => {
      await page.getByRole('button', { name: 'Show or replace…' }).click();
      await create(page, 'Replace…');
      await create(page, 'Replace the secret');
      await page.getByRole('dialog', { name: 'Replace the webhook secret' }).waitFor({ state: 'detached' });
    },
    text: 'It signs the webhooks of this account',
    copy: 'Copy the secret',
  },
];

const questionOf = (page: Page) => page.getByRole('dialog', { name: 'Leave without a copy?' });
const step = (page: Page, distance: number): Promise<unknown> => page.evaluate(`history.go(${distance})`);

/** Goes there without loading the page, from the users. */
async function openByLink({ page }: WebPage, path: string): Promise<void> {
  const navigation = page.getByRole('navigation');
  await navigation.getByRole('link', { name: 'Users' }).click();
  await page.getByRole('heading', { name: 'Users' }).waitFor();
  const [area] = /^\/admin\/\w+/.exec(path)!;
  await navigation.locator(`a[href="${area}"]`).first().click();
  await page.waitForURL(`**${area}`);
  if (path.includes('?')) await page.getByRole('tab', { name: 'Tokens' }).click();
  else if (path !== area) await page.locator(`a[href="${path}"]`).first().click();
  await page.waitForURL(`**${path}`);
}

async function openSecret(web: WebPage, { path, show, text }: Secret): Promise<void> {
  await openByLink(web, path());
  await show(web.page);
  await web.page.getByText(text).first().waitFor();
}

async function openConsole(t: ExecutionContext): Promise<WebPage> {
  const web = await useWebPage(t, pages);
  await startConsole(web, pages.stack);
  await web.open('/admin/users');
  return web;
}

withBrowser('neither "back" nor Escape loses a secret, and a second "back" leaves', async (t) => {
  const web = await openConsole(t);
  const { page } = web;
  const question = questionOf(page);
  for (const secret of secrets) {
    await openSecret(web, secret);
    const shown = page.getByText(secret.text).first();
    const here = page.url();
    for (const leave of [() => step(page, -1), () => page.keyboard.press('Escape')]) {
      await leave();
      await question.waitFor();
      t.is(page.url(), here);
      await question.getByRole('button', { name: 'Go back' }).click();
      await question.waitFor({ state: 'detached' });
      t.true(await shown.isVisible(), secret.name);
    }
    await step(page, -1);
    await question.waitFor();
    await step(page, -1);
    await page.waitForURL(({ href }) => href !== here);
    await shown.waitFor({ state: 'detached' });
    t.is(await page.getByRole('dialog').count(), 0);
  }
});

withBrowser('what was copied is left without a question', async (t) => {
  const web = await openConsole(t);
  const { page } = web;
  for (const secret of secrets) {
    await openSecret(web, secret);
    const here = page.url();
    await page.getByRole('button', { name: secret.copy }).click();
    await page.getByText('Copied').first().waitFor();
    await step(page, -1);
    await page.waitForURL(({ href }) => href !== here);
    await page.getByText(secret.text).first().waitFor({ state: 'detached' });
    t.is(await page.getByRole('dialog').count(), 0, secret.name);
  }
});

withBrowser('who answers that it may be left leaves, by each way', async (t) => {
  const secret = secrets[3]!;
  const web = await openConsole(t);
  const { page } = web;
  const question = questionOf(page);
  const leave = () => question.getByRole('button', { name: 'Leave without a copy' }).click();
  await openSecret(web, secret);
  await page.mouse.click(5, 5);
  await page.getByRole('button', { name: 'Done' }).click();
  await question.waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-secret-question', false);
  await leave();
  await page.getByRole('dialog').first().waitFor({ state: 'detached' });
  t.true(page.url().endsWith(secret.path()));

  await openSecret(web, secret);
  await step(page, -3);
  await leave();
  await page.getByRole('heading', { name: 'Audit' }).waitFor({ state: 'detached' });
  await page.getByRole('heading', { name: 'Users' }).waitFor();
  t.is(await page.getByRole('dialog').count(), 0);
  // What "forward" leads to is what it was.
  await step(page, 3);
  await page.waitForURL(`**${secret.path()}`);
  await page.getByRole('heading', { name: 'Audit' }).waitFor();
});

withBrowser('the browser asks before a tab with a secret is closed or leaves the site', async (t) => {
  const secret = secrets[0]!;
  const web = await useWebPage(t, pages);
  const { page } = web;
  await startConsole(web, pages.stack);
  await web.open('/status');
  await web.open(secret.path());
  await secret.show(page);
  await page.getByText(secret.text).waitFor();
  const asked: string[] = [];
  const goBack = async (mayLeave: boolean): Promise<void> => {
    const asking = page.waitForEvent('dialog').then(async (dialog) => {
      asked.push(dialog.type());
      await (mayLeave ? dialog.accept() : dialog.dismiss());
    });
    await step(page, -1);
    await asking;
  };
  await goBack(false);
  t.true(await page.getByText(secret.text).isVisible());
  await goBack(true);
  await page.waitForURL('**/status');
  t.deepEqual(asked, ['beforeunload', 'beforeunload']);
});

withBrowser(
  'a customer is asked about a new key that is not shown again, until a copy was made',
  async (t) => {
    const web = await useWebPage(t, pages);
    const { page } = web;
    await signIn(web, pages.stack);
    await web.open('/models');
    await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create an account' }).click();
    await page.getByText('Copy it now').waitFor();
    t.is(await page.getByRole('button', { name: 'Reveal' }).count(), 0);
    const question = questionOf(page);
    const ways = [
      () => step(page, -1),
      () => page.getByRole('link', { name: 'Models' }).first().click(),
      () => page.getByRole('button', { name: 'Hide' }).click(),
    ];
    for (const leave of ways) {
      await leave();
      await question.waitFor();
      await question.getByRole('button', { name: 'Go back' }).click();
      await question.waitFor({ state: 'detached' });
      t.true(page.url().endsWith('/keys'));
    }
    await page.getByRole('button', { name: 'Copy the key' }).click();
    await page.getByText('Copied').first().waitFor();
    await step(page, -1);
    await page.waitForURL('**/models');
  },
);
