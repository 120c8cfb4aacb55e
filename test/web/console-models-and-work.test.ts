import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { callAdmin, createToken, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { createJob, readJob } from '../support/jobs.ts';
import { allQueues, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  findAxeProblems,
  takeScreenshots,
  usePages,
  useWebPage,
  type PageBrowser,
  type WebPageOptions,
} from '../support/web-page.ts';

/** What operators do with models, routes, queues, jobs and batches on pages. */

const chatModel = (id: string, routes: string): string =>
  `  - { id: ${id}, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [${routes}] }`;

const catalogOf = (url: string): string => `
upstreams:
  first: { kind: openai, baseUrl: '${url}/v1', apiKeys: [sk-first-0123456789, sk-other-0123456789], maxConcurrency: 8 }
  second: { kind: openai, baseUrl: '${url}/v1', apiKeys: [sk-second-0123456789], maxConcurrency: 8 }
models:
${chatModel('both', '{ upstream: first, model: gpt-first }, { upstream: second, model: gpt-second }')}
${chatModel('sales/single', '{ upstream: first, model: gpt-first, cost: { prompt: 3, completion: 5 } }')}
${chatModel('held', '{ upstream: second, model: gpt-held }')}
  - { id: painter, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: second, model: img }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: second, model: emb }] }
`;

let stack: TestStack;
let browser: PageBrowser;
let vendor: VendorSimulator;
usePages(
  test,
  (pages) => {
    ({ stack, browser } = pages);
  },
  async () => {
    vendor = await startVendorSimulator();
    return { ...consoleOptions, catalog: catalogOf(vendor.url) };
  },
);
test.after.always(() => vendor?.close());

async function openConsole(t: Parameters<typeof useWebPage>[0], path: string, options: WebPageOptions = {}) {
  const web = await useWebPage(t, browser, stack, options);
  await startConsole(web, stack);
  await web.open(path);
  return web;
}

const bodyFor = (model: string) => ({
  model,
  messages: [{ role: 'user', content: 'hello' }],
  max_tokens: 10,
});
const chat = async ({ apiKey }: TestAccount, model: string): Promise<unknown> => {
  const response = await stack.post('/v1/chat/completions', apiKey, bodyFor(model));
  return response.ok ? 'ok' : ((await response.json()) as { error: { code: string } }).error.code;
};

withBrowser('a model is disabled after its numbers were shown, and enabled again', async (t) => {
  const account = await stack.createAccount();
  t.is(await chat(account, 'sales/single'), 'ok');
  const web = await openConsole(t, '/admin/models');
  const { page } = web;
  await page.getByRole('row', { name: /sales\/single/ }).waitFor();
  await takeScreenshots(web, 'console-models');
  t.deepEqual(await findAxeProblems(web), []);
  await page.getByRole('link', { name: 'sales/single' }).click();
  const dialog = page.getByRole('dialog', { name: 'sales/single', exact: true });
  await dialog.getByText('2 keys').waitFor();
  await takeScreenshots(web, 'console-model');
});
