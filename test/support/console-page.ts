import { testAdminToken } from './admin-api.ts';
import type { StackOptions, TestStack } from './stack.ts';
import type { WebPage } from './web-page.ts';

/** A stack that has an `ADMIN_TOKEN`. */
export const consoleOptions = { env: { ADMIN_TOKEN: testAdminToken } } satisfies StackOptions;

/** Gives the window a session of the console, as its sign-in does. */
export async function startConsole(
  { context }: Pick<WebPage, 'context'>,
  { url }: Pick<TestStack, 'url'>,
  token = testAdminToken,
): Promise<void> {
  const response = await context.request.post(`${url}/v1/admin/session`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { expires_at: until } = (await response.json()) as { expires_at: string };
  await context.addInitScript(`localStorage.setItem('mg.admin-until', ${JSON.stringify(until)})`);
}
