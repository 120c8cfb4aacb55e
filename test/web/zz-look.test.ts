import test from 'ava';
import { callAdmin, testAdminToken } from '../support/admin-api.ts';
import { withBrowser } from '../support/browser.ts';
import { consoleOptions, startConsole } from '../support/console-page.ts';
import { ScriptedRefusal, startScriptedVendor, unstreamedChat, type ScriptedVendor } from '../support/scripted-vendor.ts';
import type { TestStack } from '../support/stack.ts';
import { createWebUser, webStoresOf } from '../support/web-client.ts';
import { takeScreenshots, usePages, useWebPage, type PageBrowser } from '../support/web-page.ts';

const catalogOf = (url: string): string => `
upstreams:
  sound: { kind: openai, baseUrl: '${url}/sound', apiKeys: [sk-vendor-key-0123456789], maxConcurrency: 40 }
  busy: { kind: openai, baseUrl: '${url}/busy', apiKeys: [sk-vendor-key-01234567x9], maxConcurrency: 2 }
  broken: { kind: openai, baseUrl: '${url}/broken', apiKeys: [sk-vendor-key-9876543210] }
  down: { kind: openai, baseUrl: '${url}/down', apiKeys: [sk-vendor-key-9876543211] }
models:
  - { id: good, type: chat, context: 8192, pricing: { prompt: 8000000, completion: 9000000 }, routes: [{ upstream: sound, model: a, cost: { prompt: 1000000, completion: 1000000 } }] }
  - { id: slow, type: chat, context: 8192, pricing: { prompt: 700, completion: 1300 }, routes: [{ upstream: busy, model: a, cost: { prompt: 100, completion: 100 } }] }
  - { id: bad, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: broken, model: b }] }
  - { id: vendor/very-long-model-name-2026-11, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: down, model: b }] }
`;
let stack: TestStack;
let browser: PageBrowser;
let vendor: ScriptedVendor;
usePages(test, (pages) => { ({ stack, browser } = pages); }, async () => {
  vendor = await startScriptedVendor(async (_, path) => {
    if (path.startsWith('/busy')) await new Promise((r) => setTimeout(r, 40_000));
    if (path.startsWith('/broken')) return new ScriptedRefusal(401, { error: { message: 'Incorrect API key provided' } });
    if (path.startsWith('/down')) return new ScriptedRefusal(503, { error: { message: 'down' } });
    return unstreamedChat;
  });
  return { ...consoleOptions, catalog: catalogOf(vendor.url), api: { statsStepMs: 1, conditionIntervalMs: 20 } };
});
test.after.always(() => vendor?.close());

withBrowser('look', async (t) => {
  t.timeout(200_000);
  const { apiKey, id } = await stack.createAccount({ balance: '900000', rpm: 100000 });
  const send = (model: string) => stack.post('/v1/chat/completions', apiKey, { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 });
  await Promise.all([...Array(60).fill('good'), ...Array(5).fill('bad'), ...Array(12).fill('vendor/very-long-model-name-2026-11')].map(send));
  for (let i = 0; i < 6; i++) send('slow').catch(() => undefined);
  await callAdmin(stack.url, testAdminToken, 'POST', '/upstreams/sound/drain', { model: 'good' });
  const { client, user } = await createWebUser(stack, 'anna.long.address.of.somebody@example.com');
  await webStoresOf(stack).links.create({ userId: user._id, accountId: id, label: 'Магазин на диване' });
  await client.request('PATCH', '/auth/me', { timezone: 'Asia/Tokyo' });
  await createWebUser(stack, 'boris@example.com');
  await callAdmin(stack.url, testAdminToken, 'POST', '/users/boris@example.com/ban', { reason: 'рассылал спам' });
  await callAdmin(stack.url, testAdminToken, 'POST', '/codes', { balance: 50, count: 5, expires_at: '2027-01-01T00:00:00Z' });
  await callAdmin(stack.url, testAdminToken, 'POST', '/codes', { balance: 1000.5, free_requests: 25, count: 2 });
  await new Promise((r) => setTimeout(r, 2500));
  const web = await useWebPage(t, browser, stack, { language: 'ru' });
  const { page } = web;
  await startConsole(web, stack);
  await web.open('/admin');
  await page.locator('.uplot canvas').waitFor();
  await takeScreenshots(web, 'look-overview');
  await page.setViewportSize({ width: 390, height: 1500 });
  await page.evaluate('scrollTo(0, 700)'); await page.waitForTimeout(300);
  await page.screenshot({ path: '.cache/screenshots/c1.png' });
  await page.evaluate('scrollTo(0, 2000)'); await page.waitForTimeout(300);
  await page.screenshot({ path: '.cache/screenshots/c2.png' });
  await page.setViewportSize({ width: 1920, height: 1080 });
  await page.waitForTimeout(500);
  await page.screenshot({ path: '.cache/screenshots/look-overview-wall.png' });
  await page.setViewportSize({ width: 1280, height: 860 });
  t.pass(); 
  await web.open('/admin/codes');
  await page.getByRole('table').waitFor();
  await takeScreenshots(web, 'look-codes');
  await page.getByRole('button', { name: 'Создать коды' }).click();
  await page.getByLabel('Сколько кодов').fill('50');
  await page.getByLabel('Рублей в каждом').fill('50');
  await page.getByLabel('Действует до').fill('2026-12-31');
  await takeScreenshots(web, 'look-create', false);
  await page.getByRole('button', { name: 'Отмена' }).click();
  await page.getByRole('button', { name: /Отозвать код/ }).first().click();
  await page.getByText('Будет отозвано').waitFor();
  await takeScreenshots(web, 'look-revoke', false);
  await web.open('/admin/users');
  await page.getByRole('table').waitFor();
  await takeScreenshots(web, 'look-users');
  await web.open('/admin/users?user=boris@example.com');
  await page.getByText('рассылал спам').first().waitFor();
  await takeScreenshots(web, 'look-user-banned', false);
  await web.open(`/admin/users?user=${user._id}`);
  await page.getByText('Магазин на диване').first().waitFor();
  await takeScreenshots(web, 'look-user', false);
  await page.getByRole('button', { name: 'Заблокировать' }).click();
  await page.getByText('Сразу завершится').waitFor();
  await takeScreenshots(web, 'look-ban', false);
});
