import test from 'ava';
import { withBrowser } from '../support/browser.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import {
  findAxeProblems,
  launchPages,
  signIn,
  takeScreenshots,
  useWebPage,
  type PageBrowser,
} from '../support/web-page.ts';

let stack: TestStack;
let browser: PageBrowser;
test.before(async () => {
  [stack, browser] = await Promise.all([startStack(), launchPages()]);
});
test.after.always(async () => {
  await browser?.close();
  await stack?.close();
});

withBrowser('a visitor sees what this is, what it costs, and a first request to this address', async (t) => {
  const web = await useWebPage(t, browser, stack);
  const { page } = web;
  await web.open('/');
  await page.getByRole('link', { name: 'Demo echo' }).waitFor();
  await page.getByText('per million tokens').first().waitFor();
  const code = (await page.locator('.code-block code').textContent())!;
  t.true(code.startsWith(`curl ${stack.url}/v1/chat/completions`), code);
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'home');
  await page.getByRole('link', { name: 'Sign up' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
});

withBrowser('somebody with a session sees the balance, or how to get an account', async (t) => {
  const web = await useWebPage(t, browser, stack, { size: 'phone' });
  const { page } = web;
  const { client } = await signIn(web, stack);
  await web.open('/');
  await page.getByRole('link', { name: 'Create an account' }).waitFor();
  t.is((await client.request('POST', '/api-accounts/first', {})).status, 201);
  await page.reload();
  await page.getByText('Free requests left').waitFor();
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await takeScreenshots(web, 'overview');
});
