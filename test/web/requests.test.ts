import { readFile } from 'node:fs/promises';
import test, { type ExecutionContext } from 'ava';
import type { Locator, Page } from 'playwright-core';
import { errorKinds } from '../../shared/contract/error-kinds.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { insertUsage } from '../support/account-usage.ts';
import { withBrowser } from '../support/browser.ts';
import { findRow } from '../support/observe.ts';
import { insertRejection, requestRow } from '../support/request-rows.ts';
import type { TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWebUser, webStoresOf } from '../support/web-client.ts';
import { createEmail } from '../support/web-sign-in.ts';
import {
  findAxeProblems,
  signIn,
  takeScreenshots,
  usePages,
  useWebPage,
  type WebPage,
} from '../support/web-page.ts';

const email = createEmail();
/** Has a log. */
let account: TestAccount;
/** Of the request that went through the gateway. */
let firstId: string;

const pages = usePages(test, {}, async () => {
  account = await pages.stack.createAccount();
  const other = await pages.stack.createAccount();
  const { client, user } = await createWebUser(pages.stack, email);
  await webStoresOf(pages.stack).users.setTimezone(user._id, 'Asia/Kolkata');
  for (const [label, { apiKey }] of Object.entries({ Main: account, Second: other }))
    await client.request('POST', '/api-accounts/link', { api_key: apiKey, label });
  await fillLog();
});

const minuteMs = 60_000;
const logs = () => pages.stack.mongo.db.collection<RequestLogDocument>('request_logs');
const reason = 'The model is not available at the moment. Try again later.';
let thinkingRow: RequestLogDocument;

async function fillLog(): Promise<void> {
  const response = await pages.stack.post('/v1/chat/completions', account.apiKey, {
    model: 'demo-echo',
    messages: [{ role: 'user', content: 'one two three' }],
  });
  await response.arrayBuffer();
  firstId = response.headers.get('x-request-id')!;
  const { priceVersion } = await findRow(pages.stack, firstId);
  const nowMs = Date.now();
  const row = (i: number, more: Partial<RequestLogDocument>): RequestLogDocument => {
    const at = new Date(nowMs - (60 - i) * minuteMs);
    return requestRow(account.id, {
      model: 'demo-echo',
      priceVersion,
      ordinal: i + 2,
      at,
      // In the order of the ordinals.
      settledAt: new Date(nowMs + i),
      promptTokens: 40 + i,
      completionTokens: 7,
      // 50 and 150 roubles per million.
      costNano: BigInt((40 + i) * 50_000 + 7 * 150_000),
      ...more,
    });
  };
  thinkingRow = row(40, {
    promptTokens: 1_204,
    cacheReadTokens: 300,
    completionTokens: 777,
    reasoningTokens: 120,
    firstTokenMs: 412,
    costNano: 176_750_000n,
  });
  const failure = { success: false, responseCode: 502, errorCode: 'upstream_error', costNano: 0n } as const;
  await logs().insertMany([
    ...Array.from({ length: 39 }, (_, i) => row(i, {})),
    row(39, { ...failure, details: reason, completionTokens: 0 }),
    thinkingRow,
  ]);
  await insertUsage(pages.stack, account.id, [
    { model: 'demo-echo', daysAgo: 1, requests: 1_200, costNano: 12_345_678_901n },
    { model: 'text-embedding-3-small', daysAgo: 1, requests: 40, costNano: 99_000n },
    { model: 'demo-echo', daysAgo: 20, requests: 7, costNano: 1_000_000_000n },
    // A number cannot hold their sum.
    { model: 'demo-svg-image', daysAgo: 4, requests: 1, costNano: 5_000_000_000_000_001n },
    { model: 'demo-svg-image', daysAgo: 5, requests: 1, costNano: 5_000_000_000_000_002n },
  ]);
}

/** Opens a window of the user who has both accounts. */
async function openPage(
  t: ExecutionContext,
  options: Parameters<typeof useWebPage>[2] = {},
): Promise<WebPage> {
  const web = await useWebPage(t, pages, options);
  await signIn(web, pages.stack, email);
  return web;
}

const countRows = async (page: Page): Promise<number> =>
  await page.locator('.requests-table tbody tr').count();
const waitForRows = async (page: Page, count: number): Promise<void> => {
  let shown = '';
  const isReached = async (): Promise<boolean> => {
    shown = await page.locator('#main').innerText();
    return (await countRows(page)) === count;
  };
  await waitFor(() => `${count} rows, while the page shows: ${shown}`, isReached, 20_000);
};
const readNano = async (cell: Locator): Promise<bigint> =>
  parseRub((await cell.textContent())!.replaceAll(/[^\d.-]/g, ''))!;

async function saveCsv(
  { page }: WebPage,
  button = 'Download CSV',
  kind: 'CSV' | 'CSV для Excel' = 'CSV',
): Promise<string[]> {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: button }).click();
  await page.getByRole('menuitem', { name: kind, exact: true }).click();
  return (await readFile(await (await downloading).path(), 'utf8')).trimEnd().split('\n');
}

withBrowser(
  'the cost of a request is taken apart, and the parts add up to it; its address can be sent',
  async (t) => {
    const web = await openPage(t);
    const { page } = web;
    await web.open('/requests');
    await waitForRows(page, 42);
    t.regex(page.url(), /\?account=\d+$/);
    await page.getByText('300 cached').waitFor();
    await page.getByText('120 reasoning').waitFor();
    await page.getByText(reason).waitFor();
    t.deepEqual(await findAxeProblems(web), []);
    await takeScreenshots(web, 'requests');

    await page
      .getByRole('row', { name: /120 reasoning/ })
      .getByRole('link')
      .click();
    const dialog = page.getByRole('dialog');
    const amounts = dialog.locator('tbody td:last-child');
    await amounts.first().waitFor();
    let sum = 0n;
    for (const cell of await amounts.all()) sum += await readNano(cell);
    t.is(await amounts.count(), 3);
    t.is(sum, thinkingRow.costNano);
    t.is(await readNano(dialog.locator('tfoot td').last()), sum);
    await takeScreenshots(web, 'request');

    const address = page.url();
    t.true(address.includes(`request=${thinkingRow._id}`));
    await page.keyboard.press('Escape');
    await waitFor('the dialog to close', async () => (await dialog.count()) === 0);
    // As somebody opens it who looks at another account, and at another page of the log.
    await page.getByLabel('Account', { exact: true }).selectOption('Second');
    await page.getByText('No requests in the last 72 hours').waitFor();
    await web.open(`${new URL(address).pathname}${new URL(address).search}&outcome=error`);
    await page.getByRole('dialog').getByText(thinkingRow._id).waitFor();
    await waitForRows(page, 1);
  },
);

withBrowser(
  'filters are in the address, a request is found by its id, and the file has what is filtered',
  async (t) => {
    const web = await openPage(t);
    const { page } = web;
    await web.open('/requests?period=day');
    await waitForRows(page, 42);
    await page.getByLabel('Outcome').selectOption('error');
    await waitForRows(page, 1);
    t.is((await saveCsv(web)).length, 2);
    await page.reload();
    await waitForRows(page, 1);
    t.is(await page.getByLabel('Outcome').inputValue(), 'error');

    // In the time zone of the user, which is not that of the browser.
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await waitForRows(page, 42);
    await page.getByLabel('Period').selectOption('own');
    const wanted = new Date(thinkingRow.at.getTime() - 5 * minuteMs);
    const local = new Date(wanted.getTime() + 330 * minuteMs).toISOString().slice(0, 16);
    await page.getByLabel('From', { exact: true }).fill(local);
    await waitFor('the time in the address', () =>
      new URL(page.url()).searchParams.get('since')?.startsWith(wanted.toISOString().slice(0, 16)),
    );
    await waitFor('fewer rows', async () => (await countRows(page)) < 10);
    const shown = await countRows(page);
    t.is((await saveCsv(web)).length, shown + 1);

    await page.getByLabel('Find by request id').fill(firstId);
    await page.keyboard.press('Enter');
    await waitForRows(page, 1);
    t.is(new URL(page.url()).searchParams.get('since'), null);
    const lines = await saveCsv(web);
    t.true(lines.length === 2 && lines[1]!.includes(firstId));
    await page.getByLabel('Find by request id').fill('none');
    await page.keyboard.press('Enter');
    await page.getByText('This account has no request with this id').waitFor();
  },
);

withBrowser('newer requests are offered, and nothing moves until they are wanted', async (t) => {
  const web = await openPage(t, { size: 'phone', language: 'ru', theme: 'dark' });
  const { page } = web;
  await page.clock.install();
  await web.open('/requests');
  await waitForRows(page, 42);
  // The log says it in English.
  await page
    .getByTitle('upstream_error', { exact: false })
    .getByText(errorKinds.upstream_error.ru)
    .waitFor({ state: 'attached' });
  const newer = requestRow(account.id, { model: 'demo-echo', ordinal: 43 });
  await logs().insertOne(newer);
  const button = page.getByRole('button', { name: '1 новый' });
  await page.clock.runFor(5_000);
  await button.waitFor();
  t.is(await countRows(page), 42);
  await button.click();
  await waitForRows(page, 43);
  await waitFor('nothing to offer', async () => (await button.count()) === 0);
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
  const [head, ...lines] = await saveCsv(web, 'Скачать CSV', 'CSV для Excel');
  t.true(head!.startsWith('\uFEFFcreated_at;'), head);
  t.regex(
    lines.find((line) => line.includes(thinkingRow._id))!,
    /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d;.*;0,17675;/,
  );
  await logs().deleteOne({ _id: newer._id });
});

withBrowser('rejected requests are shown when they are asked for, with the reason', async (t) => {
  const id = await insertRejection(pages.stack, account.id);
  const web = await openPage(t, { size: 'phone', language: 'ru' });
  const { page } = web;
  await web.open('/requests?outcome=rejected');
  await waitForRows(page, 1);
  await page.getByText('ни в какие суммы не входят').waitFor();
  await page.locator('.requests-table tbody').getByRole('link').first().click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(id).first().waitFor();
  await dialog.getByText(errorKinds.insufficient_balance.ru).waitFor();
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
});

withBrowser('days before are summed up by model, in the page and in a file', async (t) => {
  const web = await openPage(t);
  const { page } = web;
  await web.open('/requests?view=days');
  const rows = page.locator('tbody tr');
  await waitFor('days', async () => (await rows.count()) >= 3);
  await takeScreenshots(web, 'requests-days');
  await page.getByLabel('Model').selectOption('demo-svg-image');
  await page.locator('tfoot').getByTitle('₽10,000,000.000000003').waitFor();
  await page.getByLabel('Model').selectOption('demo-echo');
  await page
    .getByLabel('To', { exact: true })
    .fill(new Date(Date.now() - 24 * 3_600_000).toISOString().slice(0, 10));
  await waitFor('two days', async () => (await rows.count()) === 2);
  t.true((await page.locator('tfoot').textContent())!.includes('1,207'));
  const lines = await saveCsv(web);
  t.is(lines.length, 3);
  t.true(lines[1]!.trim().endsWith(',12.345678901'), lines[1]);
});
