import test from 'ava';
import { insertUsage } from '../support/account-usage.ts';
import { withBrowser } from '../support/browser.ts';
import {
  findAxeProblems,
  maxScriptBytes,
  signIn,
  sizes,
  takeScreenshots,
  usePages,
  useWebPage,
} from '../support/web-page.ts';

const pages = usePages(test);

withBrowser('a visitor sees what this is, what it costs, and a first request to this address', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  await web.open('/');
  await page.getByRole('link', { name: 'Demo echo' }).waitFor();
  await page.getByText('per million tokens').first().waitFor();
  await page.getByRole('link', { name: 'Everything works' }).waitFor();
  const code = (await page.locator('.code-block code').textContent())!;
  t.true(code.startsWith(`curl ${pages.stack.url}/v1/chat/completions`), code);
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'home');
  await page.getByRole('link', { name: 'Sign up' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
});

withBrowser(
  'somebody without an account is led to the first one, and then to the first request',
  async (t) => {
    const web = await useWebPage(t, pages, { size: 'phone', language: 'ru' });
    const { page } = web;
    const { client } = await signIn(web, pages.stack);
    await web.open('/');
    await page.getByRole('link', { name: 'Создать аккаунт' }).waitFor();
    t.is((await client.request('POST', '/api-accounts/first', {})).status, 201);
    await page.reload();
    await page.getByRole('heading', { name: 'Отправьте первый запрос' }).waitFor();
    t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
    await takeScreenshots(web, 'first-steps');
    // The narrowest window that has the navigation in its header, in the language whose words are longer.
    await page.setViewportSize({ width: 1_153, height: 700 });
    await t.notThrowsAsync(page.waitForFunction('document.documentElement.scrollWidth === 1153'));
    const [menu, end] = await Promise.all(
      ['.header .navigation', '.header-end'].map((part) => page.locator(part).boundingBox()),
    );
    t.true(menu!.x + menu!.width <= end!.x);
  },
);

withBrowser('an account sees its balance, what it used in 30 days and what runs', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const { client } = await signIn(web, pages.stack);
  const { id, apiKey } = await pages.stack.createAccount({ balance: '1234.5', freeRequests: 3 });
  await client.request('POST', '/api-accounts/link', { api_key: apiKey, label: 'Main' });
  await insertUsage(
    pages.stack,
    id,
    Array.from({ length: 26 }, (_, daysAgo) => [
      {
        model: 'demo-echo',
        daysAgo,
        requests: 40 + ((daysAgo * 37) % 90),
        costNano: BigInt(daysAgo + 3) * 900_000_007n,
      },
      {
        model: 'demo-svg-image',
        daysAgo,
        requests: (daysAgo * 7) % 11,
        costNano: BigInt(daysAgo % 5) * 700_000_000n,
      },
    ]).flat(),
  );
  await web.open('/');
  await page.getByText('1,234.50').first().waitFor();
  await page.getByRole('img', { name: /^Spend by day, 30 days: .* in all, most on / }).waitFor();
  await page.locator('.chart canvas').first().waitFor();
  await page.getByText('Nothing is running.').waitFor();
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'overview');
  await page.waitForLoadState('networkidle');
  t.log(`${web.findings.scriptBytes} bytes of script, with that of the charts`);
  t.true(web.findings.scriptBytes > 80_000 && web.findings.scriptBytes < maxScriptBytes);
  // Text that is enlarged to 400 % leaves so much, as WCAG 1.4.10 says.
  await page.setViewportSize({ width: 320, height: 700 });
  // Charts are drawn again in their new width.
  await t.notThrowsAsync(page.waitForFunction('document.documentElement.scrollWidth === 320'));
  await page.setViewportSize(sizes.desktop);
  await page.getByText('Show as a table').last().click();
  const table = page.getByRole('table').filter({ hasText: 'Requests by day' });
  await table.waitFor();
  t.is(await table.getByRole('row').count(), 31);
  await page.getByRole('link', { name: 'demo-echo' }).click();
  await page.getByRole('heading', { name: 'Requests' }).waitFor();
  t.true(page.url().includes('view=days&model=demo-echo'), page.url());
});
