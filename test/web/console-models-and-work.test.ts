import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { createApiKey } from '../../shared/accounts/credentials.ts';
import { callAdmin, createToken, testAdminToken, type ListedPage } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { createJob, readJob, waitForJob } from '../support/jobs.ts';
import { allQueues, promptWorker, type TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  findAxeProblems,
  takeScreenshots,
  usePages,
  useWebPage,
  type WebPageOptions,
} from '../support/web-page.ts';

/** What operators do with models, routes, queues, jobs and batches on pages. */

const chatModel = (id: string, routes: string): string =>
  `  - { id: ${id}, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [${routes}] }`;

const catalogOf = (url: string): string => `
upstreams:
  first: { kind: openai, baseUrl: '${url}/v1', apiKeys: [sk-first-0123456789, sk-other-0123456789], maxConcurrency: 8 }
  second: { kind: openai, baseUrl: '${url}/v1', apiKeys: [sk-second-0123456789], maxConcurrency: 8 }
  absent: { kind: openai, baseUrl: 'https://vendor.example/v1', apiKeys: [env:KEY_THAT_IS_NOT_SET] }
models:
${chatModel('both', '{ upstream: first, model: gpt-first }, { upstream: second, model: gpt-second }')}
${chatModel('sales/single', '{ upstream: first, model: gpt-first, cost: { prompt: 3, completion: 5 } }')}
${chatModel('held', '{ upstream: second, model: gpt-held }, { upstream: absent, model: gpt-absent }')}
  - { id: painter, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: second, model: img }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: second, model: emb }] }
`;

let vendor: VendorSimulator;
const pages = usePages(test, async () => {
  vendor = await startVendorSimulator();
  return { ...consoleOptions, catalog: catalogOf(vendor.url), workers: [promptWorker] };
});
test.after.always(() => vendor?.close());

async function openConsole(t: Parameters<typeof useWebPage>[0], path: string, options: WebPageOptions = {}) {
  const web = await useWebPage(t, pages, options);
  await startConsole(web, pages.stack);
  await web.open(path);
  return web;
}

const bodyFor = (model: string) => ({
  model,
  messages: [{ role: 'user', content: 'hello' }],
  max_tokens: 10,
});
const chat = async ({ apiKey }: TestAccount, model: string): Promise<unknown> => {
  const response = await pages.stack.post('/v1/chat/completions', apiKey, bodyFor(model));
  return response.ok ? 'ok' : ((await response.json()) as { error: { code: string } }).error.code;
};

withBrowser('a model is disabled after its numbers were shown, and enabled again', async (t) => {
  const account = await pages.stack.createAccount();
  t.is(await chat(account, 'sales/single'), 'ok');
  const web = await openConsole(t, '/admin/models');
  const { page } = web;
  await page.getByRole('row', { name: /sales\/single/ }).waitFor();
  await takeScreenshots(web, 'console-models');
  t.deepEqual(await findAxeProblems(web), []);
  await page.getByLabel('Search').fill('single');
  await page.getByText('1 model', { exact: true }).waitFor();
  t.is(new URL(page.url()).search, '?q=single');
  await page.getByRole('link', { name: 'sales/single' }).click();
  const dialog = page.getByRole('dialog', { name: 'sales/single', exact: true });
  const prices = dialog.getByRole('row', { name: /first gpt-first/ });
  t.regex((await prices.textContent()) ?? '', /₽3.*₽7.*57\.1%/);
  t.is(await dialog.getByRole('button', { name: 'Enable', exact: true }).count(), 0);
  await dialog.getByRole('button', { name: 'Disable…' }).click();
  const confirm = page.getByRole('dialog', { name: 'Disable sales/single' });
  await confirm.getByText('In the last hour it got 1 request.').waitFor();
  await takeScreenshots(web, 'console-model-disable');
  // Escape closes the upper dialog alone, and the focus goes back.
  await page.keyboard.press('Escape');
  await confirm.waitFor({ state: 'detached' });
  await dialog.getByRole('button', { name: 'Disable…' }).and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Enter');
  const reason = confirm.getByLabel('Reason (optional)');
  await reason.fill(`its key ${createApiKey()} leaked`);
  await confirm.getByRole('button', { name: 'Disable the model' }).click();
  await confirm.getByText('Leave out API keys').waitFor();
  await reason.fill('overcharged, ticket 812');
  await confirm.getByRole('button', { name: 'Disable the model' }).click();
  await dialog.getByText('An operator has disabled it').waitFor();
  await dialog.getByText('overcharged, ticket 812').waitFor();
  await dialog.getByRole('link', { name: /^by ADMIN_TOKEN/ }).waitFor();
  t.is(await chat(account, 'sales/single'), 'model_disabled');
  await takeScreenshots(web, 'console-model-disabled');
  t.is(await dialog.getByRole('button', { name: 'Disable…' }).count(), 0);
  await dialog.getByRole('button', { name: 'Enable' }).click();
  await dialog.getByRole('button', { name: 'Disable…' }).waitFor();
  t.is(await chat(account, 'sales/single'), 'ok');
  // The dialog gives back what was behind it.
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  t.is(new URL(page.url()).search, '?q=single');
});

withBrowser('a route is drained, its upstream too, and both are undrained', async (t) => {
  const web = await openConsole(t, '/admin/models?model=sales%2Fsingle');
  const { page } = web;
  const dialog = page.getByRole('dialog', { name: 'sales/single', exact: true });
  await dialog.getByRole('button', { name: 'Take out…' }).click();
  const confirm = page.getByRole('dialog', { name: 'Take first out of service for sales/single' });
  await confirm.getByText('sales/single will have no route left').waitFor();
  await takeScreenshots(web, 'console-drain');
  await confirm.getByLabel('Reason (optional)').fill('timeouts since 14:05');
  await confirm.getByRole('button', { name: 'Take out', exact: true }).click();
  await dialog.getByText('All of its routes are taken out of service. Requests').waitFor();
  await dialog.getByText('timeouts since 14:05').waitFor();
  const account = await pages.stack.createAccount();
  t.is(await chat(account, 'sales/single'), 'model_disabled');
  t.is(await chat(account, 'both'), 'ok');
  await dialog.getByRole('button', { name: 'Put back' }).click();
  await dialog.getByRole('button', { name: 'Take out…' }).waitFor();
  t.is(await chat(account, 'sales/single'), 'ok');
  await page.keyboard.press('Escape');

  await page.getByRole('tab', { name: 'Upstreams' }).click();
  const second = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: /second/ }) });
  await second.getByRole('button', { name: 'Take out…' }).click();
  await page
    .getByRole('dialog', { name: 'Take second out of service' })
    .getByText('3 models will have no route left')
    .waitFor();
  await page.getByRole('button', { name: 'Take out', exact: true }).click();
  await second.getByText('Taken out', { exact: true }).waitFor();
  await takeScreenshots(web, 'console-upstreams');
  t.is(await chat(account, 'held'), 'model_disabled');
  const absent = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: /absent/ }) });
  await absent.getByText('KEY_THAT_IS_NOT_SET is not set in the api process').waitFor();
  t.regex((await absent.textContent()) ?? '', /No usable key.*openai vendor\.example/);
  t.is(await absent.getByRole('button').count(), 0);
  await second.getByRole('button', { name: 'Put back' }).click();
  await second.getByText('In service').waitFor();
});

withBrowser('a test of a model that its vendor refuses shows the vendor’s own words', async (t) => {
  const web = await openConsole(t, '/admin/models?model=both&state=active');
  const { page } = web;
  vendor.setFaults({ status: 400 });
  t.teardown(() => vendor.setFaults({}));
  await page.getByRole('button', { name: 'Test…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Test both' });
  await dialog.getByText('the vendor charges you: a few tokens').waitFor();
  const before = vendor.requests.entries.length;
  await dialog.getByRole('button', { name: 'Call the model' }).click();
  await dialog.getByText('It failed with status 400').waitFor();
  t.is(vendor.requests.entries.length, before + 1);
  t.regex((await dialog.locator('blockquote').textContent()) ?? '', /\S{3}/);
  await takeScreenshots(web, 'console-test');
  vendor.setFaults({});
  await dialog.getByRole('button', { name: 'Call it again' }).click();
  await dialog.getByText('It works').waitFor();
});

withBrowser('a queue is drained once its name was typed, and says before what that cancels', async (t) => {
  await pages.stack.stopWorkers();
  const [first, second] = [await pages.stack.createAccount(), await pages.stack.createAccount()];
  const job = await createJob(pages.stack, first, '/v1/chat/completions', bodyFor('held'));
  await createJob(pages.stack, second, '/v1/chat/completions', bodyFor('both'));
  const waiting = chat(second, 'both');
  const readQueue = async () =>
    (await callAdmin<{ chat: { waiting: number } }>(pages.stack.url, testAdminToken, 'GET', '/queues')).body
      .chat;
  await waitFor('all to wait', async () => (await readQueue()).waiting === 3);
  const web = await openConsole(t, '/admin/work');
  const { page } = web;
  const queue = page.getByRole('region', { name: 'Chats' }).first();
  await queue.getByText('No worker', { exact: true }).waitFor();
  await takeScreenshots(web, 'console-queues');
  t.deepEqual(await findAxeProblems(web), []);
  await queue.getByRole('button', { name: 'Cancel what waits…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Cancel what waits in chat' });
  await dialog.getByText(/Cancels 1 waiting request and 2 waiting jobs of (at least )?2 accounts/).waitFor();
  const button = dialog.getByRole('button', { name: 'Cancel what waits' });
  t.true(await button.isDisabled());
  await dialog.getByLabel('Type chat to confirm').fill('chat');
  await takeScreenshots(web, 'console-queue-drain');
  await button.click();
  await page.getByText('Cancelled: 1 waiting request and 2 waiting jobs').waitFor();
  t.is(await waiting, 'service_unavailable');
  t.is((await readJob(pages.stack, first, job.id)).status, 'cancelled');

  await page.getByRole('tab', { name: 'Jobs' }).click();
  await page.getByLabel('Account').fill(first.id);
  await page.getByLabel('Account').press('Enter');
  await page.getByRole('row', { name: /Cancelled/ }).waitFor();
  await takeScreenshots(web, 'console-jobs');
  await page.getByRole('row').getByRole('link').first().click();
  await page.getByRole('dialog', { name: 'Job' }).getByText('job_cancelled').first().waitFor();
  await takeScreenshots(web, 'console-job');
  await pages.stack.startWorker(allQueues);
});

withBrowser('the failed jobs of a queue are retried after their numbers were shown', async (t) => {
  vendor.setFaults({ status: 400 });
  t.teardown(() => vendor.setFaults({}));
  const [first, second] = [await pages.stack.createAccount(), await pages.stack.createAccount()];
  const failed = await Promise.all(
    [first, second].map(async (account) => {
      const { id } = await createJob(pages.stack, account, '/v1/chat/completions', bodyFor('both'));
      t.is((await waitForJob(pages.stack, account, id)).status, 'failed');
      return id;
    }),
  );
  vendor.setFaults({});
  const web = await openConsole(t, '/admin/work');
  const { page } = web;
  await page.getByRole('link', { name: '2 jobs failed in 24 h' }).click();
  const dialog = page.getByRole('dialog', { name: 'Failed jobs of the queue chat' });
  await dialog.getByText('upstream_rejected').nth(1).waitFor();
  await takeScreenshots(web, 'console-failed-jobs');
  await dialog
    .getByRole('link', { name: /^\w{8}…/ })
    .first()
    .click();
  await page.getByRole('dialog', { name: 'Job' }).getByText('Everything that is known').waitFor();
  await page.keyboard.press('Escape');
  await callAdmin(pages.stack.url, testAdminToken, 'POST', `/accounts/${second.id}/ban`, { reason: 'test' });
  await dialog.getByRole('button', { name: 'Retry all…' }).click();
  const confirm = page.getByRole('dialog', { name: 'Retry the failed jobs of chat' });
  await confirm.getByText('Creates 1 new job of 1 account').waitFor();
  await confirm.getByText('1 job: its account is banned').waitFor();
  await takeScreenshots(web, 'console-retry-jobs');
  await confirm.getByRole('button', { name: 'Create the jobs' }).click();
  await page.getByText('1 job retried; 1 job not').waitFor();
  await dialog.getByText('1 shown').waitFor();
  const { body } = await callAdmin<ListedPage<{ id: string }>>(
    pages.stack.url,
    testAdminToken,
    'GET',
    '/queues/chat/failed',
  );
  t.deepEqual(
    body.data.map(({ id }) => id),
    [failed[1]],
  );
});

withBrowser('a batch that runs is followed, and cancelled with what it has done', async (t) => {
  const held = vendor.hold('gpt-held');
  const account = await pages.stack.createAccount();
  const requests = Array.from({ length: 30 }, (_, i) => ({ custom_id: `line-${i}`, body: bodyFor('held') }));
  const response = await pages.stack.post('/v1/batches', account.apiKey, {
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    requests,
  });
  const { id } = (await response.json()) as { id: string };
  await waitFor('calls to be held', () => held.waiting > 3);
  held.release(3);
  const web = await openConsole(t, `/admin/work?tab=batches&account=${account.id}`);
  const { page } = web;
  await page.getByRole('row', { name: /of 30 lines/ }).waitFor();
  await takeScreenshots(web, 'console-batches');
  await page.getByRole('row').getByRole('link').first().click();
  const dialog = page.getByRole('dialog', { name: 'Batch', exact: true });
  await dialog.getByText(id, { exact: true }).first().waitFor();
  await dialog.getByText('3 of 30 lines').waitFor();
  await takeScreenshots(web, 'console-batch');
  await dialog.getByRole('button', { name: 'Cancel…' }).click();
  const confirm = page.getByRole('dialog', { name: 'Cancel the batch' });
  await confirm.getByText('27 lines are left').waitFor();
  await confirm.getByText('3 lines have their results').waitFor();
  await confirm.getByLabel('Reason').fill('the wrong file');
  await takeScreenshots(web, 'console-batch-cancel');
  await confirm.getByRole('button', { name: 'Cancel the batch' }).click();
  await dialog.getByText('Cancelling', { exact: true }).waitFor();
  held.end();
  await dialog.getByText('Cancelled', { exact: true }).first().waitFor();
  await dialog.getByText(/^by .+: the wrong file$/).waitFor();
  const { body } = await callAdmin<{ status: string; lines_succeeded: number }>(
    pages.stack.url,
    testAdminToken,
    'GET',
    `/batches/${id}`,
  );
  t.is(body.status, 'cancelled');
  t.true(body.lines_succeeded >= 3 && body.lines_succeeded < 30, String(body.lines_succeeded));
  await dialog.getByText(`${body.lines_succeeded} of 30 lines`).waitFor();
  await dialog.getByText(`${30 - body.lines_succeeded} not run`).waitFor();

  await dialog.getByRole('button', { name: 'Retry lines without a result…' }).click();
  const retry = page.getByRole('dialog', { name: 'Retry the lines without a result' });
  await retry.getByText(`${30 - body.lines_succeeded} lines that failed or were not run become`).waitFor();
  await takeScreenshots(web, 'console-batch-retry');
  await retry.getByRole('button', { name: 'Create the batch' }).click();
  await page.waitForURL((url) => url.searchParams.get('batch') !== id);
  await dialog.getByText('Completed', { exact: true }).first().waitFor();
});

withBrowser('going back from a job leaves the dialog that would cancel it', async (t) => {
  const account = await pages.stack.createAccount();
  const held = vendor.hold('gpt-held');
  const create = () => createJob(pages.stack, account, '/v1/chat/completions', bodyFor('held'));
  const [first, second] = [await create(), await create()];
  const { page } = await openConsole(t, `/admin/work?job=${first.id}`);
  await page.locator('.admin-work-id', { hasText: first.id }).waitFor();
  await page.keyboard.press('/');
  await page.getByRole('searchbox').last().fill(second.id);
  await page.keyboard.press('Enter');
  await page.locator('.admin-work-id', { hasText: second.id }).waitFor();
  await page.locator('.admin-work-head').getByRole('button', { name: 'Cancel…' }).click();
  const confirm = page.getByRole('dialog', { name: 'Cancel the job' });
  await confirm.getByText('A worker has run it').waitFor();
  await page.goBack();
  await page.locator('.admin-work-id', { hasText: first.id }).waitFor();
  await confirm.waitFor({ state: 'detached' });
  for (const { id } of [first, second]) t.false((await readJob(pages.stack, account, id)).cancel_requested);
  held.end();
});

withBrowser('a token that may only read is offered nothing else, on a phone and in Russian', async (t) => {
  const token = await createToken(pages.stack, 'reader', 'read');
  const web = await useWebPage(t, pages, { size: 'phone', theme: 'dark', language: 'ru' });
  const { page } = web;
  await startConsole(web, pages.stack, token);
  const findWide = async (): Promise<unknown> => page.evaluate('document.documentElement.scrollWidth');
  for (const [path, text, name] of [
    ['/admin/models', 'sales/single', 'models'],
    ['/admin/models?model=both', 'слотов поставщика', 'model'],
    ['/admin/models?tab=upstreams', 'не задана в процессе api', 'upstreams'],
    ['/admin/work', 'Эмбеддинги', 'queues'],
    ['/admin/work?tab=batches&status=cancelled', 'не выполнен', 'batches'],
    ['/admin/work?tab=jobs&status=cancelled', 'job_cancelled', 'jobs'],
  ] as const) {
    await web.open(path);
    await page.getByText(text).first().waitFor();
    for (const forbidden of [
      /Отключить/,
      /Включить/,
      /Проверить/,
      /Вывести/,
      /Вернуть/,
      /Сбросить…/,
      /Отменить ожидающие/,
    ])
      t.is(await page.getByRole('button', { name: forbidden }).count(), 0, `${path} ${forbidden}`);
    t.is(await findWide(), 390, path);
    await takeScreenshots(web, `console-ru-${name}`);
  }
  await page.goto(`${pages.stack.url}/admin/work?tab=batches&status=cancelled`);
  await page.getByRole('row').getByRole('link').first().click();
  const dialog = page.getByRole('dialog', { name: 'Пакет' });
  await dialog.getByText('Осталось строк').waitFor();
  t.is(await dialog.getByRole('button', { name: /Отменить|Повторить/ }).count(), 0);
  await takeScreenshots(web, 'console-ru-batch');
});
