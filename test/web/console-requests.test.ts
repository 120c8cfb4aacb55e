import { readFile } from 'node:fs/promises';
import test from 'ava';
import type { Locator } from 'playwright-core';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import type { LedgerDocument, RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { callAdmin, createToken, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { findRow } from '../support/observe.ts';
import { insertRejection, requestRow } from '../support/request-rows.ts';
import type { TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { findAxeProblems, takeScreenshots, usePages, useWebPage, type WebPage } from '../support/web-page.ts';

/** The first route is tried first, and fails; so does the second, for another reason. */
const catalogOf = (vendorUrl: string): string => `
upstreams:
  first: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [first-key] }
  second: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [second-key] }
models:
  - id: failing
    type: chat
    context: 8192
    pricing: { prompt: 7, completion: 13 }
    routes:
      - { upstream: first, model: "gpt+fail-500", weight: 1000000 }
      - { upstream: second, model: "gpt+fail-503" }
  - id: recovering
    type: chat
    context: 8192
    pricing: { prompt: 7, completion: 13 }
    routes:
      - { upstream: first, model: "gpt+fail-500", weight: 1000000 }
      - { upstream: second, model: gpt, cost: { prompt: 5, completion: 9 } }
  - id: steady
    type: chat
    context: 8192
    pricing: { prompt: 7, completion: 13 }
    routes:
      - { upstream: second, model: gpt, cost: { prompt: 5, completion: 9 } }
`;

let vendor: VendorSimulator;
let account: TestAccount;
let failedId: string;
let steadyId: string;
let recoveredId: string;

const pages = usePages(
  test,
  async () => {
    vendor = await startVendorSimulator();
    return { ...consoleOptions, catalog: catalogOf(vendor.url) };
  },
  async () => {
    account = await pages.stack.createAccount();
    [failedId, recoveredId, steadyId] = await Promise.all([
      send('failing'),
      send('recovering'),
      send('steady', { 'idempotency-key': 'order 17' }),
    ]);
    // It gets the same response, so it has no row.
    await send('steady', { 'idempotency-key': 'order 17' });
    const rows = Array.from({ length: 60 }, (_, i) =>
      requestRow(account.id, {
        model: 'steady',
        at: new Date(Date.now() - (i + 30) * 60_000),
        ordinal: i + 3,
      }),
    );
    await pages.stack.mongo.db.collection<RequestLogDocument>('request_logs').insertMany(rows);
  },
);
test.after.always(() => vendor?.close());

async function send(model: string, headers: Record<string, string> = {}): Promise<string> {
  const body = { model, messages: [{ role: 'user', content: 'one two three' }] };
  const response = await pages.stack.post('/v1/chat/completions', account.apiKey, body, headers);
  await response.arrayBuffer();
  const id = response.headers.get('x-request-id')!;
  await findRow(pages.stack, id);
  return id;
}

async function openConsole(
  t: Parameters<typeof useWebPage>[0],
  options: Parameters<typeof useWebPage>[2] = {},
  token?: string,
): Promise<WebPage> {
  const web = await useWebPage(t, pages, options);
  await startConsole(web, pages.stack, token);
  return web;
}

const waitForRows = (rows: Locator, count: number): Promise<unknown> =>
  waitFor(`${count} rows`, async () => (await rows.count()) === count);
const readNano = async (cell: Locator): Promise<bigint> =>
  parseRub((await cell.textContent())!.replaceAll(/[^\d.-]/g, ''))!;

withBrowser('a failed request is found, with both calls and the vendor’s own reason', async (t) => {
  const web = await openConsole(t, { expectedFailures: ['/v1/admin/requests/'] });
  const { page } = web;
  await web.open('/admin/requests');
  const rows = page.locator('.request-table tbody tr');
  await waitForRows(rows, 50);
  await page.getByRole('button', { name: 'Show more' }).click();
  await waitForRows(rows, 63);
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-requests', false);

  await page.getByRole('button', { name: 'Errors only' }).click();
  await waitForRows(rows, 1);
  await rows.getByRole('link').first().click();
  const dialog = page.getByRole('dialog', { name: 'Request' });
  await dialog.getByText('upstream_error').first().waitFor();
  await dialog.getByText('What the vendor said').waitFor();
  const steps = dialog.locator('.admin-requests-step.failed');
  t.regex((await steps.first().textContent())!, /first.*500/s);
  t.regex((await steps.nth(1).textContent())!, /second.*503/s);
  const bars = steps.locator('.admin-requests-bar');
  const [begins, retried] = await Promise.all([bars.nth(0).boundingBox(), bars.nth(1).boundingBox()]);
  t.true(retried!.x >= begins!.x + begins!.width - 3);
  const { attempts } = (
    await callAdmin<{ attempts: { reason: string }[] }>(
      pages.stack.url,
      testAdminToken,
      'GET',
      `/requests/${failedId}`,
    )
  ).body;
  const [customer, vendors] = await dialog.locator('.admin-requests-side').allTextContents();
  const { reason } = attempts.at(-1)!;
  t.true(vendors!.includes(reason));
  t.false(customer!.includes(reason));
  t.true(customer!.includes('502'));
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-request', false);

  // Details are in the address, over the list that is filtered.
  await page.reload();
  await dialog.getByText(failedId).first().waitFor();
  await waitForRows(page.locator('#main .request-table tbody tr'), 1);
  await page.keyboard.press('Escape');
  const search = page.getByLabel('Find by request id');
  await search.fill(recoveredId);
  await page.keyboard.press('Enter');
  await dialog.getByText('Then second answered').waitFor();
  t.is(await dialog.locator('.admin-requests-step.failed').count(), 1);
  t.is(await dialog.locator('.admin-requests-step.good').count(), 1);
  await page.keyboard.press('Escape');
  await search.fill('no-such-request');
  await page.keyboard.press('Enter');
  await dialog.getByText('No request with this id').waitFor();

  // After details were closed, what the search finds opens as the first did.
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('banner').getByRole('button', { name: 'Find' }).click();
  await page.getByRole('dialog', { name: 'Find' }).getByRole('searchbox').fill(steadyId);
  await page.keyboard.press('Enter');
  await dialog.getByText(steadyId).first().waitFor();
  t.true(page.url().includes(steadyId));
});

withBrowser('filters survive a reload, and the file has exactly what is filtered', async (t) => {
  const web = await openConsole(t);
  const { page } = web;
  await web.open('/admin/requests?model=steady');
  const rows = page.locator('.request-table tbody tr');
  await waitForRows(rows, 50);
  await page.getByRole('button', { name: 'Last hour' }).click();
  await page.getByText('31 requests').waitFor();
  await page.reload();
  await waitForRows(rows, 31);
  t.is(await page.getByLabel('Model').inputValue(), 'steady');
  t.is(await page.getByLabel('Period').inputValue(), 'hour');
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download CSV' }).click();
  await page.getByRole('menuitem', { name: 'CSV', exact: true }).click();
  const lines = (await readFile(await (await downloading).path(), 'utf8')).trim().split('\r\n');
  t.is(lines.length, 1 + 31);
  t.true(lines.some((line) => line.includes(steadyId)));
  t.true(lines.every((line) => !line.includes(failedId)));

  // The newest has vendor costs; the arrow keys lead to the next.
  await rows.first().getByRole('link').first().click();
  const dialog = page.getByRole('dialog', { name: 'Request' });
  await dialog.getByText(steadyId).first().waitFor();
  await dialog.getByText('sent again 1 time').waitFor();
  const { total_time: seconds } = (
    await callAdmin<{ total_time: number }>(pages.stack.url, testAdminToken, 'GET', `/requests/${steadyId}`)
  ).body;
  await dialog
    .getByText(`${seconds.toFixed(3)} sec`, { exact: true })
    .first()
    .waitFor();
  const sums = dialog.locator('.cost-table tfoot tr:last-child td:last-child');
  const [cost, vendorCost] = await Promise.all([readNano(sums.nth(0)), readNano(sums.nth(1))]);
  const { costNano, vendorCostNano } = await findRow(pages.stack, steadyId);
  t.deepEqual([cost, vendorCost], [costNano, vendorCostNano!]);
  const parts = dialog.locator('.cost-table').first().locator('tbody td:last-child');
  t.is((await readNano(parts.nth(0))) + (await readNano(parts.nth(1))), cost);
  await page.keyboard.press('ArrowRight');
  await waitFor('another request', () => !page.url().includes(steadyId));
  await page.keyboard.press('ArrowLeft');
  await dialog.getByText(steadyId).first().waitFor();
});

withBrowser('of an expired request, the cost is still known', async (t) => {
  const id = 'expired-request';
  const entry = (await pages.stack.mongo.db.collection<LedgerDocument>('ledger').findOne({ _id: steadyId }))!;
  await pages.stack.mongo.db.collection<LedgerDocument>('ledger').insertOne({ ...entry, _id: id });
  const web = await openConsole(t, { size: 'phone', language: 'ru', theme: 'dark' });
  const { page } = web;
  await web.open(`/admin/requests?id=${id}`);
  await page.getByRole('dialog').getByText('Известна только стоимость').waitFor();
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
});

withBrowser('a rejected request is among its own, with what the customer was told', async (t) => {
  const id = await insertRejection(pages.stack, account.id);
  const web = await openConsole(t);
  const { page } = web;
  await web.open('/admin/requests');
  await page.getByLabel('Outcome').selectOption('rejected');
  const rows = page.locator('.request-table tbody tr');
  await waitForRows(rows, 1);
  await rows.getByRole('link').first().click();
  const dialog = page.getByRole('dialog', { name: 'Request' });
  await dialog.getByText('Refill the balance').waitFor();
  await dialog.getByText('Rejected before a model was called').waitFor();
  t.true(page.url().includes(id));
  t.deepEqual(await findAxeProblems(web), []);
});

withBrowser('the audit shows a change with its token and its difference', async (t) => {
  const web = await openConsole(t);
  const { page } = web;
  const change = `/accounts/${account.id}?reason=more+traffic`;
  await callAdmin(pages.stack.url, testAdminToken, 'PATCH', change, { requests_per_minute: 77 });
  await web.open(`/admin/audit?resource=account:${account.id}`);
  const row = page.getByRole('row', { name: /Account changed/ });
  await row.getByRole('cell', { name: 'ADMIN_TOKEN' }).waitFor();
  await row.getByText('Reason: more traffic').waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-audit', false);
  await row.getByRole('link').first().click();
  const dialog = page.getByRole('dialog', { name: 'Account changed' });
  await dialog.getByRole('row', { name: /Requests per minute.*77/ }).waitFor();
  await dialog.getByText('more traffic').waitFor();
  await takeScreenshots(web, 'console-audit-event', false);
});

withBrowser('a token is created, shown once and revoked; a token that only reads may not', async (t) => {
  const web = await openConsole(t);
  const { page } = web;
  await web.open('/admin/audit?tab=tokens');
  await page.getByRole('button', { name: 'Create a token' }).click();
  await page.getByLabel('Name').fill('support');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  const made = page.getByRole('dialog', { name: 'The token “support”' });
  const secret = (await made.locator('code').textContent())!;
  t.is((await callAdmin(pages.stack.url, secret, 'GET', '/audit?limit=1')).status, 200);
  await made.getByRole('button', { name: 'Copy the token' }).click();
  await made.getByRole('button', { name: 'Done' }).click();
  await takeScreenshots(web, 'console-tokens', false);
  await page.getByRole('button', { name: 'Revoke support' }).click();
  const dialog = page.getByRole('dialog', { name: 'Revoke the token' });
  await dialog.getByText('It has never changed anything').waitFor();
  t.is((await callAdmin(pages.stack.url, secret, 'GET', '/audit?limit=1')).status, 200);
  await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
  await waitFor(
    'the token to end',
    async () => (await callAdmin(pages.stack.url, secret, 'GET', '/audit?limit=1')).status === 401,
  );

  const reader = await openConsole(t, {}, await createToken(pages.stack, 'reader', 'read'));
  await reader.open('/admin/audit?tab=tokens');
  await reader.page.getByRole('rowheader', { name: /reader/ }).waitFor();
  t.is(await reader.page.getByRole('button', { name: /Revoke|Create/ }).count(), 0);
});
