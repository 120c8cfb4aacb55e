import test from 'ava';
import type { Page } from 'playwright-core';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { RequestStatsStore } from '../../shared/ledger/request-stats-store.ts';
import { RequestSums } from '../../shared/ledger/request-sums.ts';
import { withBrowser } from '../support/browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { findAxeProblems, signIn, takeScreenshots, usePages, useWebPage } from '../support/web-page.ts';

/** The public pages about models: the list, the comparison, the calculator, a model, and the status. */

// The keys make all models of the catalog available. No vendor is called.
const keys = { OPENAI_API_KEY: 'key', ANTHROPIC_API_KEY: 'key', GEMINI_API_KEY: 'key' };

const pages = usePages(test, { env: keys }, recordDay);

/** Requests of each of 24 hours, the current one last. `f`: some failed, `F`: most did, `.`: there were none. */
const recordedHours = {
  'demo-echo': 'oooooofoooooooo.ooooFfoo',
  'gpt-4o-mini': 'oooooooooooooooooooooooo',
  'claude-sonnet-4-5': '....ooooooooofffoooooooo',
};
const failedOfTen: Readonly<Record<string, number>> = { o: 0, f: 2, F: 6 };

async function recordDay(): Promise<void> {
  const store = new RequestStatsStore(pages.stack.redis);
  for (let hoursAgo = 23; hoursAgo >= 0; hoursAgo--) {
    await store.record(sumsOfHour(23 - hoursAgo));
    const hour = Math.floor((await pages.stack.redis.time())[0]! / 3_600);
    if (hoursAgo > 0)
      await pages.stack.redis.rename(redisKeys.hourlyStats(hour), redisKeys.hourlyStats(hour - hoursAgo));
  }
}

function sumsOfHour(index: number): RequestSums {
  const sums = new RequestSums();
  for (const [model, hours] of Object.entries(recordedHours)) {
    const failed = failedOfTen[hours[index]!];
    if (failed === undefined) continue;
    const billedMs = 900 + ((index * 37) % 11) * 60;
    const request = {
      model,
      durationMs: billedMs + 80,
      billedMs,
      promptTokens: 420,
      completionTokens: 75,
      isAwaited: true,
      costNano: 0n,
      vendorCostNano: null,
    };
    for (let i = 0; i < 10; i++)
      sums.add({ ...request, success: i >= failed, responseCode: i >= failed ? 200 : 502 });
  }
  return sums;
}

const readQuery = (page: Page): Record<string, string> =>
  Object.fromEntries(new URL(page.url()).searchParams);

withBrowser('models are found by words and capabilities, which the address keeps', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await web.open('/models');
  const rows = page.locator('.models-row');
  await rows.first().waitFor();
  t.is(await rows.count(), 11);
  t.regex(
    await page.locator('.models-row', { hasText: 'demo-echo' }).innerText(),
    /₽50 per million tokens of input/,
  );
  t.regex(
    await page.locator('.models-row', { hasText: 'gpt-image-2' }).innerText(),
    /₽1\.10 to ₽25 per image/,
  );
  await page.locator('.models-row .badge').first().waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'models');

  await page.getByLabel('Search').fill('anthropic');
  await page.getByText('1 model', { exact: true }).waitFor();
  await page.getByLabel('Search').fill('');
  await page.getByRole('button', { name: 'Web search' }).click();
  await page.getByLabel('Order').selectOption('Cheapest input first');
  t.deepEqual(await rows.locator('h2').allInnerTexts(), ['Gemini 2.5 Flash', 'Claude Sonnet 4.5']);
  t.deepEqual(readQuery(page), { can: 'search', sort: 'input' });
  await page.reload();
  await rows.first().waitFor();
  t.is(await rows.count(), 2);
  await page.getByLabel('Search').fill('no such model');
  await page.getByRole('button', { name: 'Clear the filters' }).click();
  t.is(await rows.count(), 11);
});

withBrowser('chosen models are compared side by side', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await web.open('/models');
  await page.getByLabel('Compare Claude Sonnet 4.5').check();
  await page.getByLabel('Compare GPT-5 mini').check();
  await page.getByRole('region', { name: 'Chosen models' }).getByRole('button', { name: 'Compare' }).click();
  const table = page.getByRole('table', { name: 'Compare' });
  t.deepEqual(await table.locator('tr', { hasText: 'Cached input' }).locator('td').allInnerTexts(), [
    '₽30',
    '₽2.50',
  ]);
  t.deepEqual(readQuery(page), { models: 'claude-sonnet-4-5,gpt-5-mini', view: 'compare' });
  await page.getByRole('combobox', { name: 'Add a model' }).fill('flash');
  await page.getByRole('option', { name: 'Gemini 2.5 Flash' }).click();
  t.is(await table.locator('thead th').count(), 3);
  await takeScreenshots(web, 'models-compare');
});

withBrowser(
  'the calculator counts a pasted text in the page, and its link shows the same numbers',
  async (t) => {
    const web = await useWebPage(t, pages);
    const { page } = web;
    const sent: string[] = [];
    page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`));
    await web.open('/models?view=calculator');
    const field = page.getByLabel('Text of a request');
    await field.waitFor();
    await takeScreenshots(web, 'models-calculator');
    t.false(sent.some((request) => request.includes('count-worker')));
    const text = 'Сколько стоит этот запрос? How much does it cost?\n'.repeat(40);
    await field.fill(text);
    const counted = page.getByText(/^\d[\d,]* tokens$/);
    await counted.waitFor();
    const { countTokens } = await import('../../shared/catalog/count-tokens.ts');
    t.is(await page.getByLabel('Input tokens per request').inputValue(), String(countTokens(text)));

    // A number that is typed while a text is counted stays.
    await field.fill(text.repeat(40));
    // At once: a count that comes between selecting the number and replacing it would leave both.
    await page.getByLabel('Input tokens per request').evaluate((element) => {
      const field = element as unknown as { value: string; dispatchEvent(event: Event): boolean };
      field.value = '12';
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
    await page.getByText('in 80,000 characters').waitFor();
    t.is(await page.getByLabel('Input tokens per request').inputValue(), '12');

    // One unbroken run would take the square of its length if it were merged as a whole.
    await field.fill('a'.repeat(60_000));
    await page.getByText('in 60,000 characters').waitFor();

    await page.getByLabel('Input tokens per request').fill('1000000');
    await page.getByLabel('Of these, from a cache').fill('400000');
    await page.getByLabel('Output tokens per request').fill('0');
    await page.getByLabel('Requests per day').fill('2');
    await page.getByRole('combobox', { name: 'Add a model' }).fill('flash');
    await page.getByRole('option', { name: 'Gemini 2.5 Flash' }).click();
    const rows = page.getByRole('table').locator('tbody tr');
    await rows.nth(1).waitFor({ state: 'detached' });
    const cells = rows.locator('td');
    // 0.6 × 30 ₽ + 0.4 × 3 ₽
    const costs = ['₽19.20', '₽38.40', '₽1,152.00', '₽18.00', '₽1.20', '₽0.00'];
    t.deepEqual(await cells.allInnerTexts(), costs);
    t.false(page.url().includes('aaaa'));
    await page.goto(page.url());
    await cells.first().waitFor();
    t.deepEqual(await cells.allInnerTexts(), costs);
    t.is(await field.inputValue(), '');
    t.false(sent.some((request) => request.includes('aaaa')));
  },
);

withBrowser('a model is shown with its prices, its day and how to begin', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await web.open('/models/demo-echo');
  await page.getByRole('heading', { name: 'The last 24 hours' }).waitFor();
  await page.locator('.hour-bar.good').first().waitFor();
  t.regex(
    await page.locator('.code-block').innerText(),
    new RegExp(`curl ${pages.stack.url}/v1/chat/completions`),
  );
  t.deepEqual(await findAxeProblems(web), []);
  await page.locator('.u-wrap').first().waitFor();
  await takeScreenshots(web, 'model');
  // An alternative id with a slash.
  await web.open('/models/anthropic/claude-sonnet-4.5');
  await page.getByRole('heading', { name: 'Claude Sonnet 4.5' }).waitFor();
});

async function countRequests(apiKey: string): Promise<number> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${pages.stack.url}/v1/users/request_logs`, { headers });
  return ((await response.json()) as { totals: { requests: number } }).totals.requests;
}

withBrowser('somebody with an account tries a model, and sees what it cost', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const { client } = await signIn(web, pages.stack);
  const { apiKey } = await pages.stack.createAccount({ balance: '100' });
  t.is((await client.request('POST', '/api-accounts/link', { api_key: apiKey, label: 'Main' })).status, 201);
  await web.open('/models/demo-echo');
  await page.getByLabel('Your message').fill('Hello, echo');
  const keys: (string | undefined)[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/chat/completions')) keys.push(request.headers()['idempotency-key']);
  });
  await page.locator('.model-try button:enabled').evaluate((element) => {
    const button = element as unknown as { click(): void };
    button.click();
    button.click();
  });
  const response = page.getByRole('region', { name: 'Response of Demo echo' });
  await response.waitFor();
  await page.waitForLoadState('networkidle');
  t.is(new Set(keys).size, 1);
  t.truthy(keys[0]);
  t.regex(await response.innerText(), /Hello, echo/);
  t.regex(await response.innerText(), /₽0\.00/);
  // However often it was clicked, it is charged once.
  await waitFor('the row of the request', async () => (await countRequests(apiKey)) > 0);
  t.is(await countRequests(apiKey), 1);
  await web.open('/models/demo-svg-image');
  await page.getByLabel('What to draw').fill('A red fox');
  await page.getByRole('button', { name: 'Generate' }).click();
  await page.getByRole('img', { name: 'A red fox' }).waitFor();
  await takeScreenshots(web, 'model-try');
});

withBrowser('the status shows health, success by hour and servers in words', async (t) => {
  const web = await useWebPage(t, pages, { language: 'ru' });
  const { page } = web;
  await web.open('/status');
  await page.getByText('Всё работает').waitFor();
  const row = page.locator('.status-model', { hasText: 'Demo echo' });
  // 230 requests, of which 10 failed.
  t.regex(await row.innerText(), /95,\d\s%/);
  t.is(await row.locator('.hour-bar').count(), 24);
  t.regex(await page.locator('.status-servers').innerText(), new RegExp(`${pages.stack.url}/v1`));
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'status');
  await page.getByText('Показать таблицей').click();
  const cells = page.getByRole('table').locator('tbody tr', { hasText: 'Demo echo' }).locator('td');
  // When an hour has ended since the requests were recorded, the newest one has none.
  t.regex((await cells.allInnerTexts()).join(' '), /^(?:– )?100\s% 100\s% 80\s% 40\s% /);
});

withBrowser('signing out deletes the text of the calculator', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const { user } = await signIn(web, pages.stack);
  await web.open('/models?view=calculator');
  const field = page.getByLabel('Text of a request');
  await field.fill('nobody else should read this');
  await page.getByRole('button', { name: `Your profile: ${user.email}` }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('link', { name: 'Sign in' }).waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'Models' }).click();
  await page.getByRole('tab', { name: 'Cost calculator' }).click();
  t.is(await field.inputValue(), '');
});
