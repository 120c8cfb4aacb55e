import test, { type ExecutionContext } from 'ava';
import type { Route } from 'playwright-core';
import sharp from 'sharp';
import { withBrowser } from '../support/browser.ts';
import {
  findAxeProblems,
  launchPages,
  maxScriptBytes,
  signIn,
  takeScreenshots,
  usePages,
  useWebPage,
} from '../support/web-page.ts';
import { webStoresOf } from '../support/web-client.ts';

const pages = usePages(test);

/** A signed-in user with two tabs, in which nothing is open yet. The session's cookie has expired. */
async function openTwoTabs(t: ExecutionContext) {
  const web = await useWebPage(t, pages);
  const { user } = await signIn(web, pages.stack);
  await web.context.clearCookies({ name: 'mg_session' });
  const other = await web.context.newPage();
  /** Refreshes of the session by either tab. */
  const refreshes: string[] = [];
  web.context.on('request', (request) => {
    if (request.url().endsWith('/v1/web/auth/refresh')) refreshes.push(request.url());
  });
  return { web, other, user, refreshes, menu: { name: `Your profile: ${user.email}` } };
}

withBrowser(
  'a page without a session is light, and the menu changes language and theme for good',
  async (t) => {
    const web = await useWebPage(t, pages, { language: 'ru' });
    const { page } = web;
    await web.open('/models');
    await page.waitForLoadState('networkidle');
    t.true(web.findings.scriptBytes > 10_000 && web.findings.scriptBytes < maxScriptBytes);
    t.log(`${web.findings.scriptBytes} bytes of script`);
    t.is(await page.title(), 'Модели и цены · Model Gateway');

    await page.getByRole('button', { name: 'Язык и тема' }).click();
    await page.getByRole('menuitemradio', { name: 'English' }).click();
    await page.getByRole('heading', { name: 'Models and prices' }).waitFor();
    await page.getByRole('button', { name: 'Language and theme' }).press('Enter');
    await page.locator('[role=menu]:focus').waitFor();
    await page.keyboard.press('End');
    await page.locator('[data-highlighted]').getByText('Dark').waitFor();
    await page.keyboard.press('Enter');
    await page.locator('html[data-theme=dark]').waitFor();
    await page.reload();
    // Before any script: the server knows.
    t.is(await page.locator('html').getAttribute('data-theme'), 'dark');
    t.is(await page.locator('html').getAttribute('lang'), 'en');
  },
);

withBrowser(
  'links change the page without loading it again, and the focus moves to its heading',
  async (t) => {
    const web = await useWebPage(t, pages, { size: 'phone' });
    const { page } = web;
    await web.open('/');
    await page.evaluate('globalThis.isSame = true');
    await page.getByRole('button', { name: 'Open menu' }).click();
    await takeScreenshots(web, 'phone-menu');
    await page.getByRole('dialog').getByRole('link', { name: 'Models' }).click();
    await page.locator('h1:focus').waitFor();
    t.is(await page.locator('h1').textContent(), 'Models and prices');
    t.is(await page.title(), 'Models and prices · Model Gateway');
    t.is(await page.evaluate('isSame'), true);
    await page.goBack();
    await page.getByRole('heading', { name: 'AI models behind one API' }).waitFor();
    t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
  },
);

withBrowser(
  'an expired session is refreshed once by two tabs together, and survives ten reloads',
  async (t) => {
    const { web, other, user, refreshes, menu } = await openTwoTabs(t);
    await Promise.all([web.open('/keys'), other.goto(`${pages.stack.url}/requests`)]);
    await Promise.all([web.page, other].map((page) => page.getByRole('button', menu).waitFor()));
    t.is(refreshes.length, 1);
    for (let i = 0; i < 10; i += 1) await web.page.reload({ waitUntil: 'domcontentloaded' });
    await web.page.getByRole('button', menu).waitFor();
    const { sessions } = webStoresOf(pages.stack);
    t.is((await sessions.list(user._id)).length, 1);
    await takeScreenshots(web, 'frame-signed-in');
    t.deepEqual(await findAxeProblems(web), []);

    // A call that is answered after the end of its session would be refused.
    await Promise.all([web.page, other].map((page) => page.waitForLoadState('networkidle')));
    // Signing out in one tab signs out the other, too.
    await web.page.getByRole('button', menu).click();
    await web.page.getByRole('menuitem', { name: 'Sign out' }).click();
    await web.page.getByRole('link', { name: 'Sign in' }).waitFor();
    await other.waitForURL(`${pages.stack.url}/sign-in?next=%2Frequests`);
    t.is((await sessions.list(user._id)).length, 0);
  },
);

withBrowser(
  'a tab that was requested before another one refreshed the session does not refresh it again',
  async (t) => {
    const { web, other, user, refreshes, menu } = await openTwoTabs(t);
    let noteRefreshed = (): void => undefined;
    const isRefreshed = new Promise<void>((resolve) => {
      noteRefreshed = resolve;
    });
    await other.route('**/*.js', async (route) => {
      await isRefreshed;
      await route.continue();
    });
    await other.goto(`${pages.stack.url}/settings`, { waitUntil: 'commit' });
    await other.locator('meta[name=session][content=expired]').waitFor({ state: 'attached' });
    await web.open('/keys');
    await web.page.getByRole('button', menu).waitFor();
    t.is(refreshes.length, 1);
    noteRefreshed();
    await other.locator('.settings-email', { hasText: user.email }).waitFor();
    t.is(refreshes.length, 1);
  },
);

withBrowser('an unknown path is a page, and an image link shows the image', async (t) => {
  const web = await useWebPage(t, pages, { expectedFailures: ['/nothing-here', '/favicon.ico'] });
  const { page } = web;
  await web.open('/nothing-here');
  t.is(await page.locator('h1').textContent(), 'Page not found');
  await takeScreenshots(web, 'not-found');
  t.deepEqual(await findAxeProblems(web), []);
  const { apiKey } = await pages.stack.createAccount();
  const body = { model: 'demo-svg-image', prompt: 'a red square', size: '256x256', response_format: 'url' };
  const response = await pages.stack.post('/v1/images/generations', apiKey, body);
  const { data } = (await response.json()) as { data: { url: string }[] };
  await page.goto(data[0]!.url);
  // Chromium centres the image. Under a policy that forbids its style, everything is black or it stands in the corner.
  const { info, data: pixels } = await sharp(await page.screenshot())
    .raw()
    .toBuffer({ resolveWithObject: true });
  const at = (x: number, y: number): number[] => [
    ...pixels.subarray((y * info.width + x) * info.channels).subarray(0, 3),
  ];
  t.notDeepEqual(at(info.width >> 1, info.height >> 1), at(5, 5));
  t.log(at(5, 5), at(info.width >> 1, info.height >> 1));
});

withBrowser('signing out waits for a refresh that is under way', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const { user } = await signIn(web, pages.stack);
  await web.open('/settings');
  // As another tab that refreshes the session.
  await page.evaluate(`void navigator.locks.request('mg-refresh', () => new Promise((end) => {
    globalThis.endRefresh = end;
  }))`);
  let isSent = false;
  page.on('request', (request) => {
    isSent ||= request.url().endsWith('/logout');
  });
  await page.getByRole('button', { name: `Your profile: ${user.email}` }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.waitForTimeout(500);
  t.false(isSent);
  await page.evaluate('endRefresh()');
  await page.getByRole('link', { name: 'Sign in' }).waitFor();
  t.true(isSent);
  t.is((await webStoresOf(pages.stack).sessions.list(user._id)).length, 0);
});

withBrowser('a clock that was wrong when the session was refreshed does not end it', async (t) => {
  const web = await useWebPage(t, pages);
  const { user } = await signIn(web, pages.stack);
  await web.open('/models');
  await web.page.evaluate(`for (const name of ['mg.refreshed-at', 'mg.refreshing-at'])
    localStorage.setItem(name, String(Date.now() + 3_600_000))`);
  await web.context.clearCookies({ name: 'mg_session' });
  await web.open('/settings');
  await web.page.locator('.settings-email', { hasText: user.email }).waitFor();
  const names = (await web.context.cookies()).map(({ name }) => name);
  t.true(names.includes('mg_session'));
});

withBrowser(
  'going back after signing out shows nothing of the user, also from what the browser kept',
  async (t) => {
    const keeping = await launchPages(true);
    t.teardown(() => keeping.close());
    const web = await useWebPage(t, { stack: pages.stack, browser: keeping });
    const { page } = web;
    const { user } = await signIn(web, pages.stack);
    // Chromium keeps no page that forbids it. Other browsers do.
    const forgetHeader = async (route: Route): Promise<void> => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), 'cache-control': 'no-cache' } });
    };
    await page.route('**/settings', forgetHeader, { times: 1 });
    await web.open('/settings');
    await page.locator('.settings-email', { hasText: user.email }).waitFor();
    await page.evaluate(`addEventListener('pageshow', ({ persisted }) =>
    sessionStorage.setItem('restored', persisted + ' ' + document.documentElement.style.display))`);
    await web.open('/models');
    // A page that was kept is not loaded.
    await page.goBack({ waitUntil: 'commit' });
    await page.locator('.settings-email', { hasText: user.email }).waitFor();
    t.is(await page.evaluate("sessionStorage.getItem('restored')"), 'true ');
    await page.goForward({ waitUntil: 'commit' });
    await page.getByRole('heading', { name: 'Models and prices' }).waitFor();
    // What signing out leaves. Its message would make Chromium forget the page, which no standard demands.
    await web.context.clearCookies();
    await page.evaluate("localStorage.removeItem('mg.user')");
    await page.goBack({ waitUntil: 'commit' });
    await page.waitForURL(`${pages.stack.url}/sign-in?next=%2Fsettings`);
    t.is(await page.evaluate("sessionStorage.getItem('restored')"), 'true none');
  },
);
