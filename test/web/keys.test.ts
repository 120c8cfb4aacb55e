import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import type { Page } from 'playwright-core';
import { findMailCode } from '../../scripts/embedded/smtp/read-mail.ts';
import { withBrowser } from '../support/browser.ts';
import { changeSettings } from '../support/change-settings.ts';
import { readCode } from '../support/mailbox.ts';
import { findAxeProblems, signIn, takeScreenshots, usePages, useWebPage } from '../support/web-page.ts';
import { banAccount, createRefillCode, linkAccount } from '../support/web-accounts.ts';

const pages = usePages(test, { mail: true });

const run = promisify(execFile);

const awaitCode = async (email: string): Promise<string> =>
  readCode(await pages.stack.mailbox!.waitForMail(email, ({ text }) => findMailCode(text) !== null));

/** Confirms the action of an open dialog with the code that is mailed for it. */
async function confirm(page: Page, email: string, action: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Send the code' }).click();
  await dialog.getByLabel('Code from the email').fill(await awaitCode(email));
  await dialog.getByRole('button', { name: action }).click();
  await dialog.waitFor({ state: 'detached' });
}

const readKey = async (page: Page): Promise<string> => (await page.locator('.keys-key code').textContent())!;

withBrowser('a new user creates an account, redeems a code, and copies code that works', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await signIn(web, pages.stack);
  await web.open('/keys');
  await page.getByText('Create your first account').waitFor();
  await takeScreenshots(web, 'keys-empty');
  await page.getByRole('button', { name: 'Create an account' }).click();
  await page.getByText('A gift for new users is on it: 10 free requests.').waitFor();
  const key = await readKey(page);
  t.regex(key, /^mg-[\w-]{43}$/);

  await page.getByLabel('Refill code').fill(await createRefillCode(pages.stack, '50'));
  await page.getByRole('button', { name: 'Redeem' }).click();
  await page.getByText('Added: ₽50.00').waitFor();
  await page.getByRole('row', { name: /₽50\.00.*Code/ }).waitFor();
  await takeScreenshots(web, 'keys-created');

  const curl = (await page.locator('.code-block code').textContent())!;
  await page.getByRole('tab', { name: 'Node.js' }).click();
  const node = (await page.locator('.code-block code').textContent())!;
  const [byCurl, byNode] = await Promise.all([
    run('sh', ['-c', `${curl} --silent`]),
    run(process.execPath, ['--input-type=module', '--eval', node]),
    page.reload().then(() => page.getByText('The key is a password').waitFor()),
  ]);
  t.regex(byCurl.stdout, /"content":/);
  t.regex(byNode.stdout, /Hello!/);
  t.false((await page.content()).includes(key), 'the key is kept nowhere');
});

withBrowser('the key is revealed, replaced and unlinked, each with a mailed code', async (t) => {
  // Linking with a wrong key is answered with 401.
  const web = await useWebPage(t, pages, { expectedFailures: ['/link'] });
  const { page } = web;
  const { user, client } = await signIn(web, pages.stack);
  const account = await pages.stack.createAccount({ balance: '100' });
  await linkAccount(client, account, 'Shop');
  const other = await pages.stack.createAccount({ balance: '5' });
  await web.open('/keys');

  await page.getByRole('button', { name: 'Reveal' }).click();
  await takeScreenshots(web, 'keys-reveal');
  await confirm(page, user.email, 'Reveal');
  t.is(await readKey(page), account.apiKey);
  await page.getByRole('button', { name: 'Replace' }).click();
  await confirm(page, user.email, 'Replace');
  const replaced = await readKey(page);
  t.not(replaced, account.apiKey);
  t.is((await fetch(`${pages.stack.url}/v1/users/profile`, bearer(replaced))).status, 200);

  await page.getByRole('button', { name: 'Link an account' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Key of the account').fill(`${other.apiKey}x`);
  await dialog.getByRole('button', { name: 'Link', exact: true }).click();
  await dialog.locator('.field-error').filter({ hasText: 'key' }).waitFor();
  await dialog.getByLabel('Key of the account').fill(other.apiKey);
  await dialog.getByLabel('Name').fill('Lab');
  await dialog.getByRole('button', { name: 'Link', exact: true }).click();
  await page.getByRole('heading', { name: 'Lab' }).waitFor();
  t.false((await page.content()).includes(replaced), 'the key of the other account is hidden');
  await takeScreenshots(web, 'keys-two');

  await page.getByRole('button', { name: 'Unlink' }).click();
  await confirm(page, user.email, 'Unlink');
  await page.getByRole('heading', { name: 'Shop' }).waitFor();
});

const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

withBrowser('the owner sets limits within those of the operator', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const { client } = await signIn(web, pages.stack);
  const account = await pages.stack.createAccount({ balance: '100' });
  await changeSettings(pages.stack, account.id, {
    budget: { amountNano: 200_000_000_000n, period: 'monthly' },
    models: ['demo-echo', 'demo-svg-image'],
    addresses: ['127.0.0.0/8', '::1'],
    expiresAt: new Date('2099-01-01T00:00:00Z'),
  });
  await linkAccount(client, account);
  await web.open('/keys');
  await page.getByRole('button', { name: 'Change' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Limit what may be spent').check();
  await dialog.getByLabel('Amount, ₽').fill('300,5');
  await dialog.getByLabel('Allow some models only').check();
  t.is(await dialog.getByRole('group', { name: 'Models' }).getByRole('checkbox').count(), 2);
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.getByText('The operator allows at most ₽200.00 a month').waitFor();
  await dialog.getByText('Choose at least one model').waitFor();
  await takeScreenshots(web, 'keys-limits');
  await dialog.getByLabel('Amount, ₽').fill('150,5');
  await dialog.getByLabel('demo-echo').check();
  await dialog.getByLabel('Email me when the balance is low').check();
  await dialog.getByLabel('Threshold, ₽').fill('120');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByText('₽150.50 a month').waitFor();
  await page.getByText('Below your threshold of ₽120.00').waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'keys-limited');
});

withBrowser(
  'a long history is read page by page, and a ban is explained, in Russian at phone width',
  async (t) => {
    const web = await useWebPage(t, pages, { size: 'phone', language: 'ru' });
    const { page } = web;
    const { client } = await signIn(web, pages.stack);
    const account = await pages.stack.createAccount();
    const { id } = await linkAccount(client, account, 'Магазин');
    for (let i = 1; i <= 11; i++)
      await client.request('POST', `/api-accounts/${id}/redeem`, {
        code: await createRefillCode(pages.stack, `${i}`),
      });
    await web.open('/keys');
    const second = page.waitForResponse((response) => response.url().includes('page=2'));
    await page.getByRole('button', { name: 'Следующая страница' }).click();
    await (await second).finished();
    await page.getByText('2 из 2').waitFor();
    t.true(page.url().endsWith('/keys?page=2'));
    await takeScreenshots(web, 'keys-ru');
    t.true(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
    await banAccount(pages.stack, account.id);
    await page.reload();
    await page.getByText('Аккаунт заблокирован').waitFor();
    await takeScreenshots(web, 'keys-banned');
  },
);
