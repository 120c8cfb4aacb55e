import { readFile } from 'node:fs/promises';
import test from 'ava';
import { parseRub } from '../../shared/encoding/money.ts';
import { allModels, SpendStore, type AccountSpendDocument } from '../../shared/ledger/spend-store.ts';
import { callAdmin, createToken, testAdminToken, type ListedPage } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { uncounted, writeDeadCharges } from '../support/dead-entries.ts';
import { spendRow } from '../support/request-rows.ts';
import { waitFor } from '../support/wait-for.ts';
import { findAxeProblems, takeScreenshots, usePages, useWebPage, type WebPage } from '../support/web-page.ts';

const nano = 1_000_000_000n;
const accountCount = 203;
const dayBefore = (days: number): string =>
  new Date(Date.now() - days * 24 * 3_600_000).toISOString().slice(0, 10);

interface Named {
  readonly _id: string;
  readonly keyHash: string;
  readonly name: string;
}
const customer = (i: number): string => `Customer ${i}`;

let ids: string[];

/** The account of number i has paid i + 1 roubles and a nano-rouble, two days ago; the second one at a loss. */
const toRow = (id: string, i: number): AccountSpendDocument =>
  spendRow(id, i % 3 === 0 ? 'demo-svg-image' : 'demo-echo', {
    day: dayBefore(2),
    requests: i + 1,
    failures: i === accountCount - 1 ? 2 : 0,
    promptTokens: 100 * i,
    completionTokens: 10 * i,
    costNano: BigInt(i + 1) * nano + 1n,
    vendorCostNano: i === 1 ? 5n * nano : (BigInt(i + 1) * nano) / 3n,
    costedRequests: i + 1,
    costedNano: BigInt(i + 1) * nano + 1n,
  });

const pages = usePages(test, consoleOptions, async () => {
  const { id } = await pages.stack.createAccount();
  ids = [...Array.from({ length: accountCount - 1 }, (_, i) => `account-${i}`), id];
  const named = { ...(await pages.stack.mongo.db.collection<Named>('accounts').findOne({ _id: id }))! };
  await pages.stack.mongo.db
    .collection<Named>('accounts')
    .updateOne({ _id: id }, { $set: { name: customer(accountCount - 1) } });
  await pages.stack.mongo.db
    .collection<Named>('accounts')
    .insertMany(ids.slice(0, -1).map((_id, i) => ({ ...named, _id, keyHash: _id, name: customer(i) })));
  const { ofAccounts, ofModels } = new SpendStore(pages.stack.mongo.db);
  await ofAccounts.insertMany(ids.map(toRow));
  const { accountId: _, ...ofDay } = toRow('', 99);
  await ofModels.insertOne({ ...ofDay, _id: 'of a day', shard: 0, model: allModels });
});

async function openSpend(
  t: Parameters<typeof useWebPage>[0],
  query: string,
  options: Parameters<typeof useWebPage>[2] = {},
): Promise<WebPage> {
  const web = await useWebPage(t, pages, options);
  await startConsole(web, pages.stack);
  await web.open(`/admin/requests?view=spend${query}`);
  return web;
}

withBrowser(
  'the accounts that paid the most are shown, with the exact total of all and links to requests',
  async (t) => {
    const web = await openSpend(t, '');
    const { page } = web;
    const table = page.getByRole('region', { name: 'Spending' });
    const rows = table.locator('tbody tr');
    await rows.first().getByText('Customer 202').waitFor();
    t.is(await rows.count(), 200);
    await page.getByText('The first 200 of 203 rows').waitFor();
    const total = (BigInt(accountCount * (accountCount + 1)) / 2n) * nano + BigInt(accountCount);
    const paid = await page.locator('.stat-note').first().textContent();
    t.is(parseRub(paid!.replaceAll(/[^\d.]/g, '')), total);
    t.deepEqual(await findAxeProblems(web), []);
    await takeScreenshots(web, 'console-spend');

    // Those at a loss are found among all accounts, not among the rows that are shown.
    await table.getByRole('button', { name: 'Margin' }).click();
    await table.getByRole('button', { name: 'Margin' }).click();
    await rows.first().getByText('Customer 1', { exact: true }).waitFor();
    t.is(await table.locator('[aria-sort=ascending]').textContent(), 'Margin ↑');
    await page.reload();
    await rows.first().getByText('Customer 1', { exact: true }).waitFor();
    const link = rows.first().getByRole('link').nth(1);
    const params = new URL((await link.getAttribute('href'))!, pages.stack.url).searchParams;
    t.is(params.get('account'), ids[1]!);
    await link.click();
    await page.getByRole('tab', { name: 'Requests', selected: true }).waitFor();
    t.is(await page.getByLabel('Period').inputValue(), 'own');
  },
);

withBrowser('sums follow the filters, and the file has exactly them', async (t) => {
  const web = await openSpend(t, `&days=7&account=`);
  const { page } = web;
  const rows = page.getByRole('region', { name: 'Spending' }).locator('tbody tr');
  await rows.first().waitFor();
  await page.getByLabel('Account', { exact: true }).fill(ids.at(-1)!);
  await page.keyboard.press('Enter');
  await waitFor('one row', async () => (await rows.count()) === 1);
  await page.getByLabel('Summed by').selectOption('model,day');
  await rows.first().getByText('demo-echo').waitFor();
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download CSV' }).click();
  await page.getByRole('menuitem', { name: 'CSV', exact: true }).click();
  const lines = (await readFile(await (await downloading).path(), 'utf8')).trim().split('\r\n');
  t.deepEqual(lines.slice(1), [
    `demo-echo,${dayBefore(2)},203,2,0,20200,0,2020,203.000000001,67.666666666,135.333333335,203`,
  ]);
  // There are no sums by both.
  await page.getByLabel('Summed by').selectOption('upstream');
  await page.getByText('Nothing in this period').waitFor();
  t.false(page.url().includes('account='));
});

withBrowser('spending fits a phone, in Russian and dark', async (t) => {
  const web = await openSpend(t, '&by=account,model', { size: 'phone', language: 'ru', theme: 'dark' });
  const { page } = web;
  await page.getByText('Customer 202').waitFor();
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await takeScreenshots(web, 'console-spend-ru', false);
});

withBrowser('the books of an account are added up when somebody asks', async (t) => {
  const web = await useWebPage(t, pages, { size: 'phone', language: 'ru' });
  await startConsole(web, pages.stack);
  await web.open(`/admin/accounts/${ids.at(-1)}?tab=refills`);
  await web.page.getByRole('button', { name: 'Сверить счёт' }).click();
  await web.page.getByText('Счёт сходится').waitFor();
  await web.page.getByText(/^Баланс .* = зачислено .* − потрачено 0,00/).waitFor();
  t.is(await web.page.evaluate('document.documentElement.scrollWidth'), 390);
  await takeScreenshots(web, 'console-books-ru');
});

withBrowser(
  'entries that could not be read are named by the overview, and discarded one by one',
  async (t) => {
    const { stack } = pages;
    const { id } = await stack.createAccount();
    await writeDeadCharges(stack, id, [uncounted, uncounted]);
    const listDead = async () =>
      (await callAdmin<ListedPage<{ entry: string }>>(stack.url, testAdminToken, 'GET', '/ledger/dead')).body
        .data;
    const web = await useWebPage(t, pages, { expectedFailures: ['/discard'] });
    const { page } = web;
    await startConsole(web, stack);
    await web.open('/admin');
    await page.getByRole('link', { name: '2 entries of the ledger could not be read' }).click();
    await page.getByText('Customers were served for ₽0.84').waitFor();
    t.deepEqual(await findAxeProblems(web), []);
    await takeScreenshots(web, 'console-dead-entries');
    const [last, first] = (await listDead()) as [{ entry: string }, { entry: string }];
    const openDialog = async ({ entry }: { entry: string }) => {
      await page.getByRole('button', { name: `Discard the entry ${entry}` }).click();
      const dialog = page.getByRole('dialog', { name: `Discard the entry ${entry}` });
      await dialog.getByText('The customer was served. The entry would have charged ₽0.42').waitFor();
      await dialog.getByText('1 other entry stays').waitFor();
      await dialog.getByText('The entry as it was written').click();
      await dialog.getByText('ordinal: many').waitFor();
      const discard = dialog.getByRole('button', { name: 'Discard the entry' });
      t.true(await discard.isDisabled());
      await dialog.getByLabel(`Type ${entry} to confirm`).fill(entry);
      return { dialog, discard };
    };
    const { dialog, discard } = await openDialog(first);
    await takeScreenshots(web, 'console-dead-entry', false);
    // Somebody else is faster.
    await callAdmin(stack.url, testAdminToken, 'POST', `/ledger/dead/${first.entry}/discard`);
    await discard.click();
    await dialog.getByText('may have been discarded').waitFor();
    t.deepEqual(await listDead(), [last]);
    await page.keyboard.press('Escape');
    await page.getByText('1 shown').waitFor();
    await writeDeadCharges(stack, id, [uncounted]);
    const [next] = (await listDead()) as [{ entry: string }];
    await (await openDialog(last)).discard.click();
    await page.getByText('The entry is discarded').waitFor();
    t.like(await listDead(), [next]);

    const reader = await useWebPage(t, pages, { language: 'ru', size: 'phone' });
    await startConsole(reader, stack, await createToken(stack, 'ledger-reader', 'read'));
    await reader.open('/admin?view=ledger');
    await reader.page.getByText('Клиентам оказаны услуги на 0,42').waitFor();
    await reader.page.getByText('порядковый номер не число').waitFor();
    t.is(await reader.page.getByRole('button', { name: /Удалить/ }).count(), 0);
    t.is(await reader.page.evaluate('document.documentElement.scrollWidth'), 390);
    await takeScreenshots(reader, 'console-dead-entries-ru');
  },
);
