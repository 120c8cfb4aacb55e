import type { Page } from 'playwright-core';
import type { ClickCaptchaChallenge } from '../../api/contract/web-captcha.ts';
import { readCode } from './mailbox.ts';
import { solveCaptcha } from './solve-captcha.ts';
import type { TestStack } from './stack.ts';

/** Signs in as a person does: an address, clicks on icons, a code from a mail. */

export type Points = Awaited<ReturnType<typeof solveCaptcha>>;

/** Enters an address, and returns the right clicks for the captcha that comes. */
export async function enterEmail(page: Page, stack: TestStack, email: string): Promise<Points> {
  await page.getByLabel('Email address').fill(email);
  return await readSolution(page, stack, () => page.getByRole('button', { name: 'Continue' }).click());
}

/** Returns the right clicks for the captcha that comes after an action. */
export async function readSolution(page: Page, stack: TestStack, act: () => Promise<void>): Promise<Points> {
  const [response] = await Promise.all([page.waitForResponse(/captcha\/challenge$/), act()]);
  const { challenge_id } = (await response.json()) as ClickCaptchaChallenge;
  await page.locator('.captcha-picture img').waitFor();
  return await solveCaptcha(stack.redis, challenge_id);
}

export async function clickPoints(page: Page, points: Points): Promise<void> {
  const picture = page.locator('.captcha-picture');
  const { width, height } = (await picture.boundingBox())!;
  for (const { x, y } of points)
    await picture.click({ position: { x: (x / 10_000) * width, y: (y / 10_000) * height } });
}

/** Returns the code of the next mail to an address. */
export const awaitCode = async ({ mailbox }: TestStack, email: string): Promise<string> =>
  readCode(await mailbox!.waitForMail(email));
