import test from 'ava';
import type { Page, Route } from 'playwright-core';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { callAdmin, createToken, testAdminToken, type ListedPage } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { callApi } from '../support/call-api.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { requestRow } from '../support/request-rows.ts';
import { waitFor } from '../support/wait-for.ts';
import { findAxeProblems, takeScreenshots, usePages, useWebPage } from '../support/web-page.ts';

const pages = usePages(test, consoleOptions);

interface Account {
  readonly id: string;
  readonly api_key: string;
  readonly balance: number;
  readonly banned: boolean;
  readonly [name: string]: unknown;
}

async function createAccount(fields: object): Promise<Account> {
  return (await callAdmin<Account>(pages.stack.url, testAdminToken, 'POST', '/accounts', fields)).body;
}

const readAccount = async (id: string): Promise<Account> =>
  (await callAdmin<Account>(pages.stack.url, testAdminToken, 'GET', `/accounts/${id}`)).body;

const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }] };

const scrollsSideways = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth > document.documentElement.clientWidth');

withBrowser('an account is found by a word or its key, and one is created by a double click', async (t) => {
  const web = await useWebPage(t, pages, { expectedFailures: ['/v1/admin/accounts'] });
  const { page } = web;
  const anna = await createAccount({ name: 'Anna Petrova', email: 'anna@example.com', balance: 100 });
  await createAccount({ note: 'paid by invoice 1742' });
  await startConsole(web, pages.stack);
  await web.open('/admin/accounts');
  await page.getByRole('link', { name: 'Anna Petrova' }).waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  const search = page.getByRole('searchbox', { name: 'Search accounts' });
  await search.fill('petr');
  await page.waitForURL('**/admin/accounts?search=petr');
  await page.getByText('paid by invoice').waitFor({ state: 'detached' });
  await search.fill(anna.api_key.slice(0, 8));
  const asked = page.waitForResponse('**/v1/admin/find');
  await search.press('Enter');
  t.is((await asked).status(), 200);
  t.is(new URL(page.url()).search, '?search=petr');
  await search.fill(anna.api_key);
  await page.waitForURL(`**/admin/accounts/${anna.id}`);

  await page.getByRole('link', { name: 'All accounts' }).click();
  await page.getByRole('button', { name: 'Create an account' }).click();
  const dialog = page.getByRole('dialog', { name: 'New account' });
  await dialog.getByLabel('Name').fill('Boris');
  await dialog.getByLabel('Email', { exact: true }).fill('boris');
  await dialog.getByLabel('Balance, ₽', { exact: true }).fill('12,50');
  await dialog.getByText('Limits and other settings').click();
  await dialog.getByLabel('Addresses').fill('10.0.0.1/8');
  const create = dialog.getByRole('button', { name: 'Create an account' });
  await create.click();
  await dialog.getByText('Enter an address such as').waitFor();
  await dialog.getByLabel('Email', { exact: true }).fill('boris@example.com');
  await create.click();
  await dialog.getByText('without bits after its prefix').waitFor();
  await takeScreenshots(web, 'console-account-create', false);
  await dialog.getByLabel('Addresses').fill('');
  await create.dblclick();
  const ready = page.getByRole('dialog', { name: 'The account is ready' });
  const key = (await ready.locator('.shown-secret code').textContent())!;
  t.is((await callApi(pages.stack.url, key, 'GET', '/users/profile')).status, 200);
  await takeScreenshots(web, 'console-account-created', false);
  await ready.getByRole('button', { name: 'Copy the key' }).click();
  await ready.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('heading', { name: 'Boris' }).waitFor();
  const { body } = await callAdmin<ListedPage<Account>>(
    pages.stack.url,
    testAdminToken,
    'GET',
    '/accounts?search=boris',
  );
  t.deepEqual(
    body.data.map(({ balance, name }) => [name, balance]),
    [['Boris', 12.5]],
  );
});

withBrowser('a double click or a lost response credits once; less may be taken back', async (t) => {
  const web = await useWebPage(t, pages, { expectedFailures: ['/credits'] });
  const { page } = web;
  const { id } = await createAccount({ name: 'Credited', balance: 100 });
  await startConsole(web, pages.stack);
  await web.open(`/admin/accounts/${id}`);
  const dialog = page.getByRole('dialog', { name: 'Credit Credited' });
  const credit = async (amount: string, action: string): Promise<void> => {
    await page.getByRole('button', { name: 'Credit', exact: true }).click();
    await dialog.getByLabel('Amount').fill(amount);
    await dialog.getByLabel('Note').fill('invoice 1742');
    await dialog.getByText('Balance: ₽').waitFor();
    await takeScreenshots(web, `console-credit${amount}`, false);
    await dialog.getByRole('button', { name: action }).dblclick();
  };
  // The credit is made, and its response is lost.
  const loseResponse = async (route: Route): Promise<void> => {
    await route.fetch();
    await route.abort();
  };
  await page.route('**/credits', loseResponse, { times: 1 });
  await credit('50', 'Add ₽50.00');
  await dialog.getByText('could not be reached').waitFor();
  await dialog.getByRole('button', { name: 'Add ₽50.00' }).dblclick();
  await dialog.getByText('Now: ₽150.00').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await page.getByText('₽150.00 added in total').waitFor();
  await credit('-500', 'Take back ₽500.00');
  await dialog.getByText('₽150.00 taken back').waitFor();
  await dialog.getByText('Now: ₽0.00').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await page.getByRole('tab', { name: 'Refills' }).click();
  await page.getByRole('cell', { name: '-₽150.00' }).waitFor();
  t.is(await page.getByRole('cell', { name: 'invoice 1742', exact: true }).count(), 2);

  const ledger = new LedgerStore(pages.stack.mongo.db);
  const amounts = async (): Promise<string[]> =>
    (await ledger.entries.find({ accountId: id }).sort({ at: 1 }).toArray()).map(({ amountNano }) =>
      String(amountNano / 1_000_000_000n),
    );
  await waitFor('the ledger', async () => (await amounts()).length >= 3);
  t.deepEqual(await amounts(), ['100', '50', '-150']);
});

withBrowser('an account is banned with a reason, and unbanned; its settings are changed', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const account = await createAccount({ name: 'Suspect', balance: 100 });
  const { id } = account;
  t.is((await callApi(pages.stack.url, account.api_key, 'POST', '/chat/completions', chat)).status, 200);
  await startConsole(web, pages.stack);
  await web.open(`/admin/accounts/${id}`);
  await page.getByRole('button', { name: 'Ban', exact: true }).click();
  const ban = page.getByRole('dialog', { name: 'Ban Suspect' });
  await ban.getByText('Nothing of it runs or waits now.').waitFor();
  t.false((await readAccount(id)).banned);
  await ban.getByRole('button', { name: 'Ban' }).click();
  await ban.getByText('Say why.').waitFor();
  await ban.getByLabel('Reason').fill('stolen key');
  await ban.getByRole('button', { name: 'Ban' }).click();
  await page.getByText('stolen key').waitFor();
  t.is((await readAccount(id))['ban_reason'], 'stolen key');
  await page.getByRole('button', { name: 'Unban', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unban' }).click();
  await page.getByRole('button', { name: 'Ban', exact: true }).waitFor();
  t.false((await readAccount(id)).banned);

  await page.getByRole('button', { name: 'Change: Spending' }).click();
  const dialog = page.getByRole('dialog', { name: 'Spending' });
  await dialog.getByLabel('Budget').fill('500');
  await dialog.getByLabel('Period').selectOption('weekly');
  await dialog.getByLabel('Reason (optional)').fill('a new contract');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await page.getByText('₽500 a week').first().waitFor();
  const { budget } = (await readAccount(id)) as unknown as { budget: { amount: number; period: string } };
  t.is(`${budget.amount} ${budget.period}`, '500 weekly');
  await page.getByRole('button', { name: 'Show or replace…' }).click();
  const webhook = page.getByRole('dialog', { name: 'Webhook secret of Suspect' });
  const readSecret = () => webhook.locator('.shown-secret code').textContent();
  t.is(await readSecret(), `whsec_${'•'.repeat(16)}`);
  await webhook.getByRole('button', { name: 'Show', exact: true }).click();
  await webhook.getByRole('button', { name: 'Copy the secret' }).waitFor();
  const shown = await readSecret();
  t.regex(shown!, /^whsec_.{44}$/);
  await takeScreenshots(web, 'console-webhook-secret');
  await webhook.getByRole('button', { name: 'Replace…' }).click();
  const replace = page.getByRole('dialog', { name: 'Replace the webhook secret' });
  await replace.getByText('signed with both secrets for 24 hours').waitFor();
  await replace.getByRole('button', { name: 'Replace the secret' }).click();
  await replace.waitFor({ state: 'detached' });
  t.regex((await readSecret())!, /^whsec_.{44}$/);
  t.not(await readSecret(), shown);
  await webhook.getByRole('button', { name: 'Copy the secret' }).click();
  await webhook.getByText('Copied').first().waitFor();
  await page.keyboard.press('Escape');
  await webhook.waitFor({ state: 'detached' });
  await page.getByRole('tab', { name: 'Changes' }).click();
  await page.getByRole('row', { name: /Webhook secret.*Replaced: yes/ }).waitFor();
  await page.getByRole('row', { name: /Webhook secret.*Shown: yes/ }).waitFor();
  await page.getByRole('rowheader', { name: 'Unbanned' }).waitFor();
  await page.getByRole('row', { name: /₽500 a week.*Reason: a new contract/ }).waitFor();
  t.is(new URL(page.url()).search, '?tab=changes');
});

withBrowser('what the scope of the token forbids is not offered; all of it fits on a phone', async (t) => {
  const { id } = await createAccount({
    name: 'Looked at',
    balance: 100,
    budget: { amount: 10, period: 'daily' },
  });
  await new LedgerStore(pages.stack.mongo.db).logs.insertOne(requestRow(id));
  const buttons = [
    'Create an account',
    'Credit',
    'Ban',
    'Replace the key',
    'Change: Limits',
    'Show or replace…',
  ];
  const offered = { billing: ['Create an account', 'Credit'], read: [] } as const;
  for (const scope of ['billing', 'read'] as const) {
    const web = await useWebPage(t, pages, { size: 'phone' });
    const { page } = web;
    await startConsole(web, pages.stack, await createToken(pages.stack, `${scope}-only`, scope));
    const found: string[] = [];
    const look = async (): Promise<void> => {
      for (const name of buttons)
        if ((await page.getByRole('button', { name, exact: true }).count()) > 0) found.push(name);
      t.false(await scrollsSideways(page), page.url());
    };
    await web.open('/admin/accounts');
    await page.getByRole('link', { name: 'Looked at' }).waitFor();
    await look();
    await web.open(`/admin/accounts/${id}`);
    await page.getByText('₽10 a day').first().waitFor();
    await look();
    t.deepEqual(found, [...offered[scope]], scope);
    if (scope === 'read') t.deepEqual(await findAxeProblems(web), []);
  }
});
