import test from 'ava';
import { withBrowser } from '../support/browser.ts';
import { allQueues, type TestAccount } from '../support/stack.ts';
import { linkAccount } from '../support/web-accounts.ts';
import {
  findAxeProblems,
  signIn,
  takeScreenshots,
  usePages,
  useWebPage,
  type WebPage,
} from '../support/web-page.ts';

const pages = usePages(test);

async function signInWithAccount(web: WebPage): Promise<TestAccount> {
  const { client } = await signIn(web, pages.stack);
  const account = await pages.stack.createAccount({ balance: '100' });
  await linkAccount(client, account);
  return account;
}

const chat = (words: string, model = 'demo-echo') => ({
  model,
  messages: [{ role: 'user', content: words }],
  max_tokens: 40,
});
const respondAsync = { prefer: 'respond-async' };

async function createJob(account: TestAccount, path: string, body: object): Promise<string> {
  const response = await pages.stack.post(`/v1${path}`, account.apiKey, body, respondAsync);
  return ((await response.json()) as { id: string }).id;
}

const upload = (web: WebPage, lines: readonly string[]): Promise<void> =>
  web.page.locator('input[type=file]').setInputFiles({
    name: 'requests.jsonl',
    mimeType: 'application/jsonl',
    buffer: Buffer.from(lines.join('\n')),
  });

withBrowser(
  'a file becomes a batch once its cost is known, and its failed lines can be retried',
  async (t) => {
    const web = await useWebPage(t, pages);
    const { page } = web;
    await signInWithAccount(web);
    await web.open('/jobs?tab=batches');
    await page.getByText('No batches yet').waitFor();
    const lines = Array.from({ length: 20 }, (_, i) =>
      JSON.stringify({
        custom_id: `line-${i}`,
        body: chat(`Say hello ${i} times`, i === 7 ? 'no-such-model' : 'demo-echo'),
      }),
    );
    await upload(web, lines);
    await page.getByText('Cost, at most').waitFor();
    // Nothing is lost by a reload.
    await page.reload();
    await page.getByText('"no-such-model" does not exist', { exact: false }).waitFor();
    await takeScreenshots(web, 'jobs-estimate');
    t.deepEqual(await findAxeProblems(web), []);
    await page.getByLabel(/Spend no more than/).fill('many');
    await page.getByRole('button', { name: 'Start the batch' }).click();
    await page.getByText('Enter an amount in roubles').waitFor();
    await page.getByLabel(/Spend no more than/).fill('0,5');
    await page.getByRole('button', { name: 'Start the batch' }).click();

    await page.waitForURL(/\/batches\/batch_/);
    await page.getByText('Completed with errors').waitFor();
    await page.getByRole('heading', { name: '1 failed line' }).waitFor();
    await page.getByText('model_not_found').waitFor();
    await page.locator('.facts').getByText('requests.jsonl').waitFor();
    // A wrong name fails again.
    await page.getByRole('link', { name: 'Upload the corrected file' }).waitFor();
    await page.getByText('Say hello 3 times').waitFor();
    const stats = await page.locator('.stat').allTextContents();
    const [cost, estimate] = stats.map((text) => Number(/₽([\d.]+)/.exec(text)?.[1]));
    t.true(cost! > 0 && cost! <= estimate!, stats.join('\n'));
    await takeScreenshots(web, 'batch');
    t.deepEqual(await findAxeProblems(web), []);

    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download results' }).click(),
    ]);
    t.regex(download.suggestedFilename(), /^batch_.*-results\.jsonl$/);
    const before = page.url();
    await page.getByRole('button', { name: 'Retry lines without a result' }).click();
    await page.getByRole('dialog').getByText('1 line runs again').waitFor();
    await takeScreenshots(web, 'batch-retry');
    await page.getByRole('dialog').getByRole('button', { name: 'Retry lines without a result' }).click();
    await page.waitForURL((url) => url.href !== before);
    await page.getByRole('heading', { name: '1 failed line' }).waitFor();
  },
);

withBrowser('a file that cannot run says which lines are wrong, on a phone and in Russian', async (t) => {
  const web = await useWebPage(t, pages, {
    size: 'phone',
    theme: 'dark',
    language: 'ru',
    expectedFailures: ['/cost-estimate'],
  });
  const { page } = web;
  await signInWithAccount(web);
  await web.open('/jobs?tab=batches');
  await takeScreenshots(web, 'jobs-new');
  await upload(web, [JSON.stringify({ custom_id: '1', body: chat('а') }), 'нет', '{"body": {}}']);
  await page.getByText('Этот файл нельзя выполнить').waitFor();
  t.deepEqual(await page.locator('.work-faults li span:first-child').allTextContents(), [
    'Строка 2',
    'Строка 3',
  ]);
  await page.getByText('Строка — некорректный JSON').waitFor();
  await page.getByText('В каждой строке нужен custom_id.').waitFor();
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await takeScreenshots(web, 'jobs-faults');
  await page.getByRole('button', { name: 'Выбрать другой файл' }).click();
  await page.getByRole('button', { name: 'Выбрать файл' }).waitFor();
});

withBrowser('a job is followed in its queue and to its result, and can be cancelled', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const account = await signInWithAccount(web);
  await web.open('/jobs');
  await page.getByText('No jobs yet').waitFor();
  await pages.stack.stopWorkers();
  const [first, second] = [
    await createJob(account, '/chat/completions', chat('a lighthouse at dusk')),
    await createJob(account, '/chat/completions', chat('an owl')),
  ];
  await createJob(account, '/images/generations', { model: 'demo-svg-image', prompt: 'an owl' });
  await web.open('/jobs?status=queued');
  await page.getByText('1 job ahead').waitFor();
  await takeScreenshots(web, 'jobs-queued');

  await page.locator(`a[href="/jobs/${second}"]`).click();
  await page.getByRole('button', { name: 'Cancel the job' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('it ends at once and costs nothing', { exact: false }).waitFor();
  await dialog.getByRole('button', { name: 'Cancel the job' }).click();
  await page.getByText('It was cancelled').waitFor();
  await dialog.waitFor({ state: 'detached' });

  await web.open(`/jobs/${first}`);
  await page.locator('.badge', { hasText: 'Queued' }).waitFor();
  await pages.stack.startWorker(allQueues);
  await page.locator('.badge', { hasText: 'Succeeded' }).waitFor();
  await page.locator('.work-text', { hasText: 'a lighthouse at dusk' }).waitFor();
  await takeScreenshots(web, 'job');
  t.deepEqual(await findAxeProblems(web), []);

  await page.getByRole('link', { name: 'Jobs and batches' }).click();
  await page.locator('.jobs-images img').waitFor();
  t.is(
    await page
      .locator('.jobs-images img')
      .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth > 0),
    true,
  );
  await takeScreenshots(web, 'jobs');
  t.deepEqual(await findAxeProblems(web), []);
});

withBrowser('the address of a job is enough, and another account does not show it', async (t) => {
  // The other account has no such job.
  const web = await useWebPage(t, pages, { expectedFailures: ['/v1/jobs/'] });
  const { page } = web;
  const { client } = await signIn(web, pages.stack);
  const accounts = await Promise.all([1, 2].map(() => pages.stack.createAccount({ balance: '100' })));
  const [first, second] = [accounts[0]!, accounts[1]!];
  await linkAccount(client, first, 'First');
  await linkAccount(client, second, 'Second');
  const id = await createJob(first, '/images/generations', { model: 'demo-svg-image', prompt: 'an owl' });
  // The browser keeps no account yet.
  await web.open(`/jobs/${id}`);
  await page.locator('.badge', { hasText: 'Succeeded' }).waitFor();
  await page.getByRole('button', { name: /^account First/i }).click();
  await page.getByRole('menuitemradio', { name: 'Second' }).click();
  await page.locator('.badge', { hasText: 'Succeeded' }).waitFor({ state: 'detached' });
  t.is(await page.getByText(id).count(), 0);
});

withBrowser('a file whose start was not answered is not started again with another limit', async (t) => {
  const web = await useWebPage(t, pages, { expectedFailures: ['/v1/batches'] });
  const { page } = web;
  const account = await signInWithAccount(web);
  await web.open('/jobs?tab=batches');
  await upload(web, [JSON.stringify({ custom_id: '1', body: chat('an owl') })]);
  const starting = page.getByRole('button', { name: 'Start the batch' });
  await starting.waitFor();
  await page.route('**/v1/batches', async (route) => {
    if (route.request().method() !== 'POST') return await route.continue();
    await route.fetch();
    await route.abort();
    await page.unroute('**/v1/batches');
  });
  await starting.click();
  await page.getByText('The server could not be reached', { exact: false }).waitFor();
  await page.getByLabel(/Spend no more than/).fill('5');
  await starting.click();
  await page.getByText('This file had been started already', { exact: false }).waitFor();
  await page.waitForURL(/\/batches\/batch_/);
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const response = await fetch(`${pages.stack.url}/v1/batches`, { headers });
  const { data } = (await response.json()) as { data: { id: string }[] };
  t.deepEqual(
    data.map(({ id }) => page.url().endsWith(id)),
    [true],
  );
});
