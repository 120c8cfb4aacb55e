import test from 'ava';
import { withBrowser } from '../support/browser.ts';
import { findAxeProblems, signIn, takeScreenshots, usePages, useWebPage } from '../support/web-page.ts';
import { createWebUser, webStoresOf } from '../support/web-client.ts';

const pages = usePages(test);

withBrowser('one session is ended, then all others, and this one goes on', async (t) => {
  const web = await useWebPage(t, pages);
  const { page } = web;
  const { user } = await signIn(web, pages.stack);
  for (let i = 0; i < 3; i++) await createWebUser(pages.stack, user.email);
  await web.open('/settings');
  const rows = page.getByRole('listitem').filter({ hasText: 'Firefox on Linux' });
  await rows.nth(3).waitFor();
  t.true(await rows.first().getByText('this device').isVisible());
  t.deepEqual(await findAxeProblems(web), []);
  await takeScreenshots(web, 'settings');
  await rows.nth(1).getByRole('button').click();
  await rows.nth(3).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'End all others' }).click();
  const ask = page.getByRole('dialog', { name: 'End 2 other sessions?' });
  await ask.getByRole('button', { name: 'End all others' }).click();
  await page.getByText('You are signed in here only.').waitFor();
  t.is((await webStoresOf(pages.stack).sessions.list(user._id)).length, 1);
});

withBrowser('time zone, language and theme are chosen, and the user signs out', async (t) => {
  const web = await useWebPage(t, pages, { size: 'phone' });
  const { page } = web;
  const { user } = await signIn(web, pages.stack, 'ann@example.com');
  await web.open('/settings');
  await page.locator('#main').getByLabel('Language').selectOption('ru');
  await page.getByRole('heading', { name: 'Сеансы и устройства' }).waitFor();
  await page.locator('#main').getByLabel('Тема').selectOption('dark');
  t.is(await page.locator('html').getAttribute('data-theme'), 'dark');

  const zone = page.getByRole('combobox', { name: 'Часовой пояс' });
  for (const [typed, found] of [
    ['kazan', 'Москва, GMT+3, Europe/Moscow · Kazan'],
    ['челябинск', 'Екатеринбург, GMT+5, Asia/Yekaterinburg · Челябинск'],
    ['владивосток', 'Владивосток, GMT+10, Asia/Vladivostok'],
  ] as const) {
    await zone.fill(typed);
    await page.getByRole('option', { name: found, exact: true }).waitFor();
    t.is(await page.locator('.combobox').getByRole('option').first().textContent(), found);
  }
  await page.locator('.combobox').getByRole('option').first().click();
  await page.getByText('Часовой пояс сохранён').waitFor();
  await takeScreenshots(web, 'settings-ru');
  t.true(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
  // The field follows the language.
  await page.locator('#main').getByLabel('Язык').selectOption('en');
  await page.getByRole('heading', { name: 'Sessions and devices' }).waitFor();
  await page.waitForFunction(
    "document.querySelector('.combobox input').value.startsWith('Vladivostok, GMT+10')",
  );
  await page.locator('#main').getByLabel('Language').selectOption('ru');
  await page.getByRole('heading', { name: 'Сеансы и устройства' }).waitFor();
  const saved = await webStoresOf(pages.stack).users.findById(user._id);
  t.is(saved?.timezone, 'Asia/Vladivostok');

  await page.getByRole('button', { name: 'Выйти' }).click();
  await page.waitForURL(`${pages.stack.url}/`);
  t.is((await webStoresOf(pages.stack).sessions.list(user._id)).length, 0);
});
