import test from 'ava';
import type { Page } from 'playwright-core';
import type { Overview } from '../../api/contract/admin/overview.ts';
import { callAdmin, createToken, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import {
  ScriptedRefusal,
  startScriptedVendor,
  unstreamedChat,
  type ScriptedVendor,
} from '../support/scripted-vendor.ts';
import { promptWorker } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { findAxeProblems, takeScreenshots, usePages, useWebPage } from '../support/web-page.ts';

const catalogOf = (url: string): string => `
upstreams:
  sound: { kind: openai, baseUrl: '${url}/sound', apiKeys: [sk-vendor-key-0123456789], maxConcurrency: 4 }
  broken: { kind: openai, baseUrl: '${url}/broken', apiKeys: [sk-vendor-key-9876543210] }
models:
  - { id: good, type: chat, context: 8192, pricing: { prompt: 700, completion: 1300 }, routes: [{ upstream: sound, model: a, cost: { prompt: 100, completion: 100 } }] }
  - { id: bad, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: broken, model: b }] }
`;

let vendor: ScriptedVendor;
const pages = usePages(test, async () => {
  vendor = await startScriptedVendor((_, path) =>
    path.startsWith('/broken')
      ? new ScriptedRefusal(401, { error: { message: 'Incorrect API key provided' } })
      : unstreamedChat,
  );
  return {
    ...consoleOptions,
    catalog: catalogOf(vendor.url),
    api: { statsStepMs: 1, conditionIntervalMs: 20, trafficIntervalMs: 200 },
    workers: [promptWorker],
  };
});
test.after.always(() => vendor?.close());

const readOverview = async (): Promise<Overview> =>
  (await callAdmin<Overview>(pages.stack.url, testAdminToken, 'GET', '/overview')).body;

async function sendChats(models: readonly string[]): Promise<void> {
  const { apiKey } = await pages.stack.createAccount({ balance: '100' });
  await Promise.all(
    models.map((model) =>
      pages.stack.post('/v1/chat/completions', apiKey, {
        model,
        messages: [{ role: 'user', content: 'hello' }],
        max_tokens: 10,
      }),
    ),
  );
}

/** Counts the calls of the API that a page makes. */
function watchCalls(page: Page): string[] {
  const calls: string[] = [];
  page.on('request', (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.startsWith('/v1/')) calls.push(pathname);
  });
  return calls;
}

const setVisibility = (page: Page, state: 'visible' | 'hidden'): Promise<unknown> =>
  page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
    Object.defineProperty(document, 'hidden', { value: ${state === 'hidden'}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));`);

withBrowser('the overview is one call every five seconds, and none while nobody sees it', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const calls = watchCalls(page);
  await page.clock.install();
  await startConsole(web, pages.stack, await createToken(pages.stack, 'wall', 'read'));
  await web.open('/admin');
  await page.getByRole('heading', { name: 'Nothing is wrong' }).waitFor();
  await takeScreenshots(web, 'console-overview-calm');
  const countAfter = async (ms: number, expected: number): Promise<void> => {
    calls.splice(0);
    const responses = Array.from({ length: expected }, () => page.waitForResponse('**/v1/admin/overview'));
    await page.clock.runFor(ms);
    await Promise.all(responses);
    t.deepEqual(calls, Array<string>(expected).fill('/v1/admin/overview'));
  };
  await countAfter(5_000, 1);
  await countAfter(5_000, 1);
  await setVisibility(page, 'hidden');
  await countAfter(60_000, 0);
  calls.splice(0);
  const seen = page.waitForResponse('**/v1/admin/overview');
  await setVisibility(page, 'visible');
  await seen;
  t.deepEqual(calls, ['/v1/admin/overview']);
});

withBrowser('the overview shows traffic, and what is wrong with links to its cause', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await sendChats(['good', 'good', 'good', 'bad', 'bad', 'bad']);
  await waitFor('the condition', async () => {
    const { conditions, traffic } = await readOverview();
    return conditions.length > 0 && traffic?.hour.all.requests === 6;
  });
  await page.clock.install();
  await startConsole(web, pages.stack);
  await web.open('/admin');
  const problems = page.getByRole('region', { name: /problem/ });
  await problems.getByText('broken refuses a key. Nothing else serves bad.').waitFor();
  const table = page.getByRole('table', { name: 'Traffic and money' });
  t.deepEqual(await table.getByRole('row').nth(1).locator('.admin-overview-value').allTextContents(), [
    '6',
    '6',
  ]);
  t.deepEqual(await table.getByRole('row').nth(2).locator('.admin-overview-value').allTextContents(), [
    '3',
    '3',
  ]);
  t.is(
    await problems.getByRole('link', { name: 'broken' }).first().getAttribute('href'),
    '/admin/models?tab=upstreams&upstream=broken',
  );
  const failures = new URL(
    (await problems.getByRole('link', { name: '3 of 3' }).getAttribute('href'))!,
    pages.stack.url,
  );
  t.deepEqual(
    [failures.pathname, failures.searchParams.get('outcome'), failures.searchParams.get('model')],
    ['/admin/requests', 'error', 'bad'],
  );
  t.false(Number.isNaN(Date.parse(failures.searchParams.get('since')!)));
  await page.locator('.uplot canvas').waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'console-overview');

  // Numbers change where they are.
  await sendChats(['good', 'good']);
  await waitFor('the requests', async () => (await readOverview()).traffic?.hour.all.requests === 8);
  await page.clock.runFor(5_000);
  await table.getByRole('row').nth(1).getByText('8').first().waitFor();

  // What cannot be read says so in its place, and an update that stands still is told.
  const read = await readOverview();
  const { processes, upstreams } = read;
  const builds = [...processes!.workers.builds, { build: '0.0.9+0a1b2c3d', count: 1 }];
  const later: Overview = {
    ...read,
    unavailable: ['traffic'],
    traffic: null,
    processes: { ...processes!, workers: { ...processes!.workers, builds } },
    upstreams: upstreams!.map((upstream) => ({ ...upstream, drained: upstream.name === 'sound' })),
  };
  await page.route('**/v1/admin/overview', (route) => route.fulfill({ json: later }));
  await page.clock.runFor(5_000);
  await problems.getByText('Missing: traffic.').waitFor();
  await problems.getByText('Processes run different builds').waitFor();
  await problems.getByText('taken sound out of service').waitFor();
  t.is(await page.getByText('Could not be read').count(), 3);
});

withBrowser('the set-up is checked when somebody asks, and upstreams only after a question', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const calls = watchCalls(page);
  await startConsole(web, pages.stack);
  await web.open('/admin');
  await page.getByRole('link', { name: 'Check the set-up' }).click();
  await page.getByText('MongoDB', { exact: false }).first().waitFor();
  await page.getByText(/^Checked at/).waitFor();
  calls.splice(0);
  const checked = page.waitForResponse('**/v1/admin/doctor');
  await page.getByRole('button', { name: 'Check again' }).click();
  t.is((await checked).status(), 200);
  t.deepEqual(calls, ['/v1/admin/doctor'], 'the overview is not polled here');
  t.deepEqual(await findAxeProblems(web), []);
  await page.getByRole('button', { name: 'Call the upstreams' }).click();
  await page.getByRole('button', { name: 'Call them' }).click();
  const ofUpstreams = page.locator('.card', { has: page.getByRole('heading', { name: 'Upstreams' }) });
  await ofUpstreams
    .getByText(/answered in/)
    .first()
    .waitFor();
  await ofUpstreams.getByText(/^key .*: bad failed/).waitFor();
  await takeScreenshots(web, 'console-setup');

  const reader = await useWebPage(t, pages, { language: 'ru', size: 'phone' });
  await startConsole(reader, pages.stack, await createToken(pages.stack, 'setup-reader', 'read'));
  await reader.open('/admin?view=setup');
  await reader.page.getByText(/^Проверено в/).waitFor();
  t.is(await reader.page.getByRole('button', { name: 'Вызвать поставщиков' }).count(), 0);
  t.is(await reader.page.evaluate('document.documentElement.scrollWidth'), 390);
  await takeScreenshots(reader, 'console-setup-ru');
});
