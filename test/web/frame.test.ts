import test from 'ava';
import { withBrowser } from '../support/browser.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { launchPages, takeScreenshots, useWebPage, signIn, type PageBrowser } from '../support/web-page.ts';

let stack: TestStack;
let browser: PageBrowser;
test.before(async () => {
  [stack, browser] = await Promise.all([startStack({ mail: true }), launchPages()]);
});
test.after.always(async () => {
  await browser?.close();
  await stack?.close();
});

withBrowser(
  'a page is shown in the language of the browser, and the menu switches language and theme',
  async (t) => {
    const web = await useWebPage(t, browser, stack, { language: 'ru' });
    await web.open('/models');
    t.is(await web.page.locator('h1').textContent(), 'Модели и цены');
    await takeScreenshots(web, 'frame');
  },
);

withBrowser('somebody with a session sees the navigation of users', async (t) => {
  const web = await useWebPage(t, browser, stack);
  await signIn(web, stack);
  await web.open('/keys');
  t.true(await web.page.getByRole('link', { name: 'Requests' }).first().isVisible());
});
