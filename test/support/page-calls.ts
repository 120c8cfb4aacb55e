import type { Page } from 'playwright-core';
import type { ApiResponse, ErrorBody } from './call-api.ts';

/**
 * Calls the page's own origin from its script. The browser handles cookies.
 * @param path below `/v1/web`
 */
export async function callFromPage<T = ErrorBody>(
  page: Page,
  method: 'GET' | 'POST' | 'PATCH',
  path: string,
  { body, csrfToken }: { readonly body?: unknown; readonly csrfToken?: string } = {},
): Promise<ApiResponse<T>> {
  const options = {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(csrfToken === undefined ? {} : { 'x-csrf-token': csrfToken }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  return await page.evaluate(
    async ({ url, options }) => {
      const response = await fetch(url, options);
      const text = await response.text();
      return { status: response.status, body: (text === '' ? null : JSON.parse(text)) as T };
    },
    { url: `/v1/web${path}`, options },
  );
}

/** Sends a chat from the page's script. @returns the text of the response */
export const streamFromPage = async (
  page: Page,
  chat: object,
  headers: Readonly<Record<string, string>>,
): Promise<string> =>
  await page.evaluate(async (options) => await (await fetch('/v1/chat/completions', options)).text(), {
    method: 'POST',
    headers,
    body: JSON.stringify(chat),
  });

/**
 * Makes every kind of request that a page of another origin could try, even with a known CSRF token.
 * @throws Error if the browser lets the page read a response
 */
export async function attackFromPage(page: Page, target: string, csrfToken: string): Promise<void> {
  const read = await page.evaluate(
    async ({ url, csrfToken }) => {
      const send = async (path: string, options: RequestInit): Promise<string> =>
        await fetch(`${url}${path}`, { credentials: 'include', ...options }).then(
          ({ type }) => type,
          () => 'refused by the browser',
        );
      const headers = { 'content-type': 'application/json', 'x-csrf-token': csrfToken };
      const body = JSON.stringify({ timezone: 'Asia/Tokyo' });
      return [
        await send('/logout', { method: 'POST', mode: 'no-cors' }),
        await send('/refresh', { method: 'POST', mode: 'no-cors' }),
        await send('/me', { method: 'PATCH', headers, body }),
        await send('/me', {}),
        await send('/../../jobs', { headers: { 'x-api-account': '1' } }),
      ];
    },
    { url: `${target}/v1/web/auth`, csrfToken },
  );
  const expected = ['opaque', 'opaque', ...Array<string>(3).fill('refused by the browser')];
  if (read.join() !== expected.join()) throw new Error(`the page could read: ${read.join()}`);
  // Submitting a form navigates to its target, like clicking a link.
  const form = `const form = document.createElement('form');
    Object.assign(form, { method: 'post', action: '${target}/v1/web/auth/logout' });
    document.body.append(form);
    form.submit();`;
  await Promise.all([page.waitForURL(`${target}/**`), page.evaluate(form)]);
}
