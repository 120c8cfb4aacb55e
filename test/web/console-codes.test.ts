import test from 'ava';
import { readFile } from 'node:fs/promises';
import { callAdmin, createToken, readAllPages, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { createWebUser, webStoresOf } from '../support/web-client.ts';
import { findAxeProblems, takeScreenshots, usePages, useWebPage } from '../support/web-page.ts';

/** Codes and users in the console. */

const pages = usePages(test, consoleOptions);

interface Code {
  readonly status: string;
  readonly batch: string;
}

const listCodes = (): Promise<Code[]> => readAllPages<Code>(pages.stack.url, testAdminToken, '/codes', 100);

withBrowser('codes are created once, whatever happens, and revoked with numbers', async (t) => {
  const web = await useWebPage(t, pages, { expectedFailures: ['/v1/admin/codes'] });
  const { page } = web;
  await startConsole(web, pages.stack);
  await web.open('/admin/codes');
  await page.getByText('No codes yet').waitFor();
  await page.getByRole('button', { name: 'Create codes' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('How many codes').fill('3');
  await dialog.getByLabel('Roubles each').fill('50,50');
  await dialog.getByText('3 codes, ₽151.50').waitFor();

  // The first response is lost; then somebody is impatient.
  await page.route('**/v1/admin/codes', async (route) => {
    await route.fetch();
    await route.abort();
    await page.unroute('**/v1/admin/codes');
  });
  const create = dialog.getByRole('button', { name: 'Create' });
  await create.click();
  await dialog.getByText('The server could not be reached').waitFor();
  await create.dblclick();
  await page.getByRole('dialog', { name: '3 codes created' }).waitFor();
  t.is((await listCodes()).length, 3);
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-codes-created', false);

  await dialog.getByRole('button', { name: 'Done' }).click();
  const question = page.getByRole('dialog', { name: 'Leave without a copy?' });
  await question.getByText('You have neither copied nor downloaded').waitFor();
  await question.getByRole('button', { name: 'Go back' }).click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    dialog.getByRole('button', { name: '.csv' }).click(),
  ]);
  const [head, ...rows] = (await readFile(await download.path(), 'utf8')).trim().split('\r\n');
  t.is(head, 'code,balance,free_requests,expires_at');
  t.is(rows.length, 3);
  const [code, balance] = rows[0]!.split(',');
  t.is(balance, '50.5');
  await dialog.getByRole('button', { name: 'Done' }).click();
  await dialog.waitFor({ state: 'detached' });
  const account = await pages.stack.createAccount();
  t.is((await pages.stack.post('/v1/users/redeem', account.apiKey, { code })).status, 200);

  await page.getByRole('table').getByRole('link').first().click();
  const batch = page.getByRole('region', { name: 'Batch' });
  await batch.getByText('Made by').waitFor();
  t.regex((await batch.getByRole('link').getAttribute('href'))!, /^\/admin\/audit\?resource=code%3A/);
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.getByRole('link', { name: account.id.slice(0, 8) }).waitFor();
  await takeScreenshots(web, 'console-codes');
  await batch.getByRole('button', { name: 'Revoke all' }).click();
  await dialog.getByText('Revokes 2 codes worth ₽101.').waitFor();
  await dialog.getByText('1 code has been redeemed and stays so').waitFor();
  await dialog.getByRole('button', { name: 'Revoke all' }).click();
  await page.getByText('2 codes revoked').waitFor();
  t.deepEqual((await listCodes()).map(({ status }) => status).toSorted(), ['redeemed', 'revoked', 'revoked']);
  await page.getByRole('tab', { name: 'Unused' }).click();
  await page.getByText('No such codes').waitFor();
  t.is(new URL(page.url()).searchParams.get('status'), 'unused');
});

withBrowser('a ban ends the sessions of a user; an account is unlinked; both can be seen', async (t) => {
  const { client, user } = await createWebUser(pages.stack, 'anna@example.com');
  const { id } = await pages.stack.createAccount({ balance: '61' });
  const web = await useWebPage(t, pages);
  const { page } = web;
  await webStoresOf(pages.stack).links.create({ userId: user._id, accountId: id, label: 'Shop' });
  await startConsole(web, pages.stack);
  await web.open('/admin/users');
  await page.getByRole('link', { name: 'anna@example.com' }).waitFor();
  const find = page.getByRole('searchbox', { name: 'Find a user' });
  await find.fill('nobody@example.com');
  await find.press('Enter');
  await page.getByText('Nobody has this address or id').waitFor();
  await find.fill('Anna@example.com');
  await find.press('Enter');
  const details = page.getByRole('dialog', { name: 'anna@example.com', exact: true });
  await details.getByRole('link', { name: 'Shop' }).waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-user');
  t.is((await client.request('GET', '/auth/me')).status, 200);
  await details.getByRole('button', { name: 'Ban', exact: true }).click();
  const ban = page.getByRole('dialog', { name: 'Ban anna@example.com' });
  await ban.getByText('1 session ends at once. The key of 1 linked account keeps working').waitFor();
  await ban.getByLabel('Reason').fill('stolen mailbox');
  await ban.getByRole('button', { name: 'Ban', exact: true }).click();
  await details.getByText('stolen mailbox').waitFor();
  t.is((await client.request('GET', '/auth/me')).status, 401);
  await details.getByText('Not signed in anywhere.').waitFor();

  await details.getByRole('button', { name: 'Unlink the account Shop' }).click();
  const unlink = page.getByRole('dialog', { name: 'Unlink the account' });
  await unlink.getByText('anna@example.com no longer sees it').waitFor();
  await unlink.getByRole('button', { name: 'Unlink' }).click();
  await details.getByText('No account is linked.').waitFor();
  t.is(await webStoresOf(pages.stack).links.findByAccount(id), null);

  await details.getByRole('button', { name: 'Unban' }).click();
  await page.getByRole('dialog', { name: 'Unban' }).getByRole('button', { name: 'Unban' }).click();
  await details.getByRole('button', { name: 'Ban', exact: true }).waitFor();
  t.is((await webStoresOf(pages.stack).users.findById(user._id))!.bannedAt, null);
  const { body } = await callAdmin<{ data: { action: string }[] }>(
    pages.stack.url,
    testAdminToken,
    'GET',
    `/audit?resource=user:${user._id}`,
  );
  t.deepEqual(
    body.data.map(({ action }) => action),
    ['user.unban', 'user.unlink', 'user.ban'],
  );
});

withBrowser(
  'a token that only reads is offered no changes, on a phone without scrolling sideways',
  async (t) => {
    const web = await useWebPage(t, pages, { size: 'phone' });
    const { page } = web;
    await startConsole(web, pages.stack, await createToken(pages.stack, 'reader', 'read'));
    const check = async (path: string, shown: string): Promise<void> => {
      await web.open(path);
      await page.getByText(shown).first().waitFor();
      const width = await page.evaluate('document.documentElement.scrollWidth');
      t.is(width, 390, path);
      const changes = page.getByRole('button', { name: /Create|Revoke|Ban|Unban|End all|Unlink/ });
      t.is(await changes.count(), 0, path);
    };
    await check('/admin', 'Nothing is wrong');
    await check('/admin/codes', 'redeemed');
    await check('/admin/users?user=anna@example.com', 'Latest events');
  },
);
