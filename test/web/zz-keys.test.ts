import test from 'ava';
import { callAdmin, createToken, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import type { TestStack } from '../support/stack.ts';
import { findAxeProblems, usePages, useWebPage, type PageBrowser } from '../support/web-page.ts';

let stack: TestStack;
let browser: PageBrowser;
usePages(test, (pages) => { ({ stack, browser } = pages); }, consoleOptions);

withBrowser('keys', async (t) => {
  const { body } = await callAdmin<any>(stack.url, testAdminToken, 'POST', '/accounts', { name: 'Keys', balance: 5 });
  const web = await useWebPage(t, browser, stack, { expectedFailures: ['/v1/admin/'] });
  const { page } = web;
  const token = await createToken(stack, 'short', 'all');
  await startConsole(web, stack, token);
  await web.open(`/admin/accounts/${body.id}`);
  await page.getByRole('button', { name: 'Change: Limits' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  t.log('focus in dialog', await page.evaluate('document.activeElement.outerHTML.slice(0, 120)'));
  t.deepEqual(await findAxeProblems(web), []);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.waitForTimeout(200);
  t.log('after', await page.evaluate('document.activeElement.outerHTML.slice(0, 200)'));
  await page.getByRole('button', { name: 'Credit', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Credit Keys' });
  await dialog.getByLabel('Amount').fill('7');
  await callAdmin(stack.url, testAdminToken, 'DELETE', '/tokens/short');
  await page.waitForTimeout(1500);
  await dialog.getByRole('button', { name: 'Add ₽7.00' }).click();
  const ended = page.getByRole('dialog', { name: 'Your session has ended' });
  await ended.waitFor();
  await ended.getByRole('textbox', { name: 'Token' }).fill(testAdminToken);
  await ended.getByRole('button', { name: 'Sign in' }).click();
  await ended.waitFor({ state: 'detached' });
  t.is(await dialog.getByLabel('Amount').inputValue(), '7');
  await dialog.getByRole('button', { name: 'Add ₽7.00' }).click();
  await dialog.getByText('Now: ₽12.00').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await page.getByRole('button', { name: 'Replace the key' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Replace the key' }).click();
  const shown = page.getByRole('dialog', { name: 'The key is replaced' });
  t.log(await shown.innerText());
  t.deepEqual(await findAxeProblems(web), []);
  page.on('dialog', (one) => { t.log('asks', one.message()); one.dismiss().catch(() => undefined); });
  await page.keyboard.press('Escape');
  await page.waitForTimeout(300);
  t.is(await shown.count(), 1);
  await shown.getByRole('button', { name: 'I have kept the key' }).click();
  await shown.waitFor({ state: 'detached' });
  for (const tab of ['Jobs', 'Batches', 'Refills', 'Spend', 'Changes']) {
    await page.getByRole('tab', { name: tab }).click();
    await page.locator('.tab-panel .card > :is(.empty, .table-scroll, .admin-account-filter)').first().waitFor();
    t.deepEqual(await findAxeProblems(web), [], tab);
  }
});
