import test from 'ava';
import { formatRub, parseRub } from '../../shared/encoding/money.ts';
import { withBrowser } from '../support/browser.ts';
import { awaitCode, clickPoints, enterEmail } from '../support/sign-in-by-page.ts';
import { createRefillCode } from '../support/web-accounts.ts';
import { usePages, useWebPage } from '../support/web-page.ts';
import { createEmail } from '../support/web-sign-in.ts';

/** Everything that a new customer does, by links and buttons alone. */

const pages = usePages(test, { mail: true, env: { SIGNUP_FREE_REQUESTS: '0' } });

withBrowser('a stranger signs up, pays by code, chats, and finds out what it cost', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await web.open('/');
  await page.getByRole('link', { name: 'Sign up' }).click();
  const email = createEmail();
  await clickPoints(page, await enterEmail(page, pages.stack, email));
  await page.getByLabel('Code from the email').fill(await awaitCode(pages.stack, email));
  await page.getByRole('button', { name: 'Sign in', exact: true }).last().click();

  await page.getByRole('link', { name: 'Create an account' }).click();
  await page.getByRole('button', { name: 'Create an account' }).click();
  await page.getByLabel('Refill code').fill(await createRefillCode(pages.stack, '50'));
  await page.getByRole('button', { name: 'Redeem' }).click();
  await page.getByText('Added: ₽50.00').waitFor();

  await page.getByRole('link', { name: 'Playground' }).click();
  await page.getByRole('textbox', { name: 'Your message' }).fill('Say hello');
  await page.getByRole('button', { name: 'Send' }).click();
  const total = page.getByText(/This conversation: ₽[\d.]*[1-9]/);
  await total.waitFor();
  const cost = /₽([\d.]+)/.exec((await total.textContent())!)![1]!;
  await page.getByRole('article').getByRole('link', { name: 'Details' }).click();
  // The log follows within a second or two; until then, the page says that there is nothing.
  const row = page.getByRole('row', { name: /demo-echo/ });
  await row.waitFor();
  t.is(/₽([\d.]+)$/.exec((await row.textContent())!)![1], cost);
  t.true(parseRub(cost)! > 0n);

  await page.getByRole('link', { name: 'Model Gateway' }).click();
  const left = formatRub(parseRub('50')! - parseRub(cost)!);
  // The digits that matter are shown, all of them on hover.
  await page.locator('.stat').getByTitle(`₽${left}`).waitFor();
});
