import test, { type ExecutionContext } from 'ava';
import { callAdmin, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import {
  ScriptedRefusal,
  startScriptedVendor,
  unstreamedChat,
  type ScriptedVendor,
} from '../support/scripted-vendor.ts';
import { waitFor } from '../support/wait-for.ts';
import { findAxeProblems, takeScreenshots, usePages, useWebPage, type WebPage } from '../support/web-page.ts';

/** What support looks for in the console: causes, names, and who did what. */

const catalogOf = (url: string): string => `
upstreams:
  north: { kind: openai, baseUrl: '${url}/north', apiKeys: [sk-vendor-key-0123456789] }
  south: { kind: openai, baseUrl: '${url}/south', apiKeys: [sk-vendor-key-9876543210] }
models:
  - { id: alone, type: chat, context: 8192, pricing: { prompt: 700, completion: 1300 }, routes: [{ upstream: north, model: a }] }
  - { id: twice, type: chat, context: 8192, pricing: { prompt: 700, completion: 1300 }, routes: [{ upstream: north, model: b }] }
  - { id: broken, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: south, model: c }] }
`;

let vendor: ScriptedVendor;
const pages = usePages(test, async () => {
  vendor = await startScriptedVendor((_, path) =>
    path.startsWith('/south')
      ? new ScriptedRefusal(500, { error: { message: 'The server had an error.' } })
      : unstreamedChat,
  );
  return { ...consoleOptions, catalog: catalogOf(vendor.url), api: { statsStepMs: 1 } };
});
test.after.always(() => vendor?.close());

const admin = <T>(method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  callAdmin<T>(pages.stack.url, testAdminToken, method, path, body, headers);

interface Account {
  readonly id: string;
  readonly api_key: string;
}

/** What customers and operators have done before, once for all tests. */
let seeding: Promise<Account> | null = null;
async function seed(): Promise<Account> {
  const owner = { name: 'Acme Ltd', balance: 100 };
  const { body: account } = await admin<Account>('POST', '/accounts', owner);
  const chat = async (model: string): Promise<void> => {
    const response = await pages.stack.post('/v1/chat/completions', account.api_key, {
      model,
      messages: [{ role: 'user', content: 'hello' }],
      max_tokens: 10,
    });
    await response.arrayBuffer();
  };
  await chat('alone');
  for (let i = 0; i < 3; i++) await chat('broken');
  const credit = { amount: -5, note: 'invoice 1742' };
  await admin('POST', `/accounts/${account.id}/credits`, credit, { 'idempotency-key': 'one' });
  await admin('POST', '/upstreams/north/drain', {});
  return account;
}

async function openConsole(t: ExecutionContext): Promise<WebPage & { readonly account: Account }> {
  const account = await (seeding ??= seed());
  const web = await useWebPage(t, pages);
  await startConsole(web, pages.stack);
  return { ...web, account };
}

withBrowser('the overview names the models that serve nobody, and who made it so', async (t) => {
  const web = await openConsole(t);
  const { page } = web;
  await web.open('/admin');
  const problem = page.getByRole('listitem').filter({ hasText: 'serve nobody' });
  await problem.getByText('An operator has taken north out of service').waitFor();
  await problem.getByText('alone, twice serve nobody.').waitFor();
  const change = problem.getByRole('link', { name: 'by ADMIN_TOKEN' });
  await change.waitFor();
  await takeScreenshots(web, 'console-support-overview');
  t.deepEqual(await findAxeProblems(web), []);
  await change.click();
  await page.getByRole('link', { name: 'Upstream taken out' }).waitFor();
  t.is(new URL(page.url()).searchParams.get('resource'), 'upstream:north');
});

withBrowser('a model that mostly fails is found by its state, with the reason of the vendor', async (t) => {
  const web = await openConsole(t);
  const { page } = web;
  await waitFor('the hours', async () => {
    const response = await fetch(`${pages.stack.url}/v1/models/history`);
    const hours = ((await response.json()) as Record<string, { requests: number }[]>)['broken'];
    return hours?.some(({ requests }) => requests === 3);
  });
  await web.open('/admin/models?state=failing');
  await page.getByRole('table').getByRole('link', { name: 'broken' }).click();
  const dialog = page.getByRole('dialog', { name: 'broken' });
  await dialog.getByText('Most of its requests fail: 3 of the last 3.').waitFor();
  await dialog.getByText(/The newest failure, .*The server had an error/).waitFor();
  await takeScreenshots(web, 'console-support-model');
  t.deepEqual(await findAxeProblems(web), []);
});

withBrowser(
  'an account says from where it is used, and who credited it; the audit says what was changed',
  async (t) => {
    const web = await openConsole(t);
    const { page, account } = web;
    await web.open(`/admin/accounts/${account.id}?tab=addresses`);
    await page.getByRole('row', { name: /127\.0\.0\.1 4 · 3 failed/ }).waitFor();
    await takeScreenshots(web, 'console-support-addresses');
    await page.getByRole('tab', { name: 'Refills' }).click();
    await page.getByLabel('Note or code').fill('1742');
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: /Operator ADMIN_TOKEN/ }).waitFor();
    await takeScreenshots(web, 'console-support-refills');

    await web.open('/admin/audit');
    const row = page.getByRole('row').filter({ hasText: 'Account credited' });
    await row.getByText('-₽5.00, “invoice 1742”').waitFor();
    await row.getByRole('link', { name: 'Acme Ltd' }).waitFor();
    await takeScreenshots(web, 'console-support-audit');
    await page.getByLabel('Id or name').fill(account.id);
    await page.keyboard.press('Enter');
    await page.getByRole('row').filter({ hasText: 'Upstream taken out' }).waitFor({ state: 'detached' });
    await row.waitFor();

    await page.getByRole('button', { name: 'Find' }).click();
    const finder = page.getByRole('dialog', { name: 'Find' });
    await finder.getByRole('searchbox').fill(`mg-${'a'.repeat(43)}`);
    await page.keyboard.press('Enter');
    await finder.getByText('No account has this key').waitFor();
    t.deepEqual(await findAxeProblems(web), []);
  },
);
