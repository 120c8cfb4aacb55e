import test from 'ava';
import type { Page } from 'playwright-core';
import { withBrowser } from '../support/browser.ts';
import { awaitCode, clickPoints, enterEmail, readSolution, type Points } from '../support/sign-in-by-page.ts';
import { findAxeProblems, signIn, takeScreenshots, usePages, useWebPage } from '../support/web-page.ts';
import { createEmail } from '../support/web-sign-in.ts';

const pages = usePages(test, { mail: true });

/** The marker begins in the middle and moves by 400 of 10 000. */
async function pressPoints(page: Page, points: Points): Promise<void> {
  await page.locator('.captcha-picture').focus();
  let [atX, atY] = [5_000, 5_000];
  for (const { x, y } of points) {
    for (; Math.abs(x - atX) > 200; atX += Math.sign(x - atX) * 400)
      await page.keyboard.press(x > atX ? 'ArrowRight' : 'ArrowLeft');
    for (; Math.abs(y - atY) > 200; atY += Math.sign(y - atY) * 400)
      await page.keyboard.press(y > atY ? 'ArrowDown' : 'ArrowUp');
    await page.keyboard.press('Enter');
  }
}

/** Pastes a text into the focused field, as a person does. */
const paste = (page: Page, text: string): Promise<void> => page.keyboard.insertText(text);

withBrowser('wrong clicks bring a new picture, right ones a code, and a pasted code signs in', async (t) => {
  // A wrong code is answered with 422.
  const web = await useWebPage(t, pages, { expectedFailures: ['verify-code'] });
  const { page } = web;
  await web.open('/sign-in?next=%2Frequests%3Fmodel%3Dx');
  const email = createEmail();
  const points = await enterEmail(page, pages.stack, email);
  await takeScreenshots(web, 'sign-in-captcha');
  const second = await readSolution(page, pages.stack, () => clickPoints(page, points.toReversed()));
  await page.getByText('Those were not the icons').waitFor();
  await clickPoints(page, second);

  const field = page.getByLabel('Code from the email');
  await field.waitFor();
  await page.locator('.code-input:focus').waitFor();
  await paste(page, '000-001');
  await page.getByRole('button', { name: 'Sign in', exact: true }).last().click();
  await page.locator('.field-error', { hasText: /code/ }).waitFor();
  await takeScreenshots(web, 'sign-in-code');
  t.deepEqual(await findAxeProblems(web), []);

  const code = await awaitCode(pages.stack, email);
  await field.fill('');
  // With a hyphen, and characters that nobody sees.
  await paste(page, `\u200b ${code.slice(0, 3)}-${code.slice(3)}\u2060\n`);
  t.is(await field.inputValue(), code);
  await page.keyboard.press('Enter');
  await page.waitForURL(`${pages.stack.url}/requests?model=x`);
  await page.getByRole('button', { name: `Your profile: ${email}` }).waitFor();
});

withBrowser('the captcha is solved by keyboard, and a phone shows everything', async (t) => {
  const web = await useWebPage(t, pages, { size: 'phone', theme: 'dark' });
  const { page } = web;
  await web.open('/sign-in?next=//elsewhere.test/');
  await page.getByRole('button', { name: 'Continue' }).click();
  t.is(await page.locator('.field-error').textContent(), 'Enter your email address.');
  await takeScreenshots(web, 'sign-in');
  t.deepEqual(await findAxeProblems(web), []);
  const email = createEmail();
  await pressPoints(page, await enterEmail(page, pages.stack, email));
  await page.getByLabel('Code from the email').fill(await awaitCode(pages.stack, email));
  await page.getByLabel(/Keep me signed in/).check();
  await page.getByRole('button', { name: 'Sign in', exact: true }).last().click();
  // `next` led to another site.
  await page.waitForURL(`${pages.stack.url}/`);
  t.is(await page.evaluate('document.documentElement.scrollWidth'), 390);
});

withBrowser('who has a session is not led to another site', async (t) => {
  const web = await useWebPage(t, pages);
  await signIn(web, pages.stack);
  // The path of each is `//elsewhere.test/` once its dots are resolved.
  for (const next of ['/.//elsewhere.test/', '/a/..//elsewhere.test/', '/%2e//elsewhere.test/']) {
    await web.page.goto(`${pages.stack.url}/sign-in?next=${encodeURIComponent(next)}`);
    await web.page.waitForURL((url) => url.pathname !== '/sign-in');
    t.is(web.page.url(), `${pages.stack.url}/`);
  }
});
