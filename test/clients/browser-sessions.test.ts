import test, { type ExecutionContext } from 'ava';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { AuthResult, EmailCodeRequested, SignedInUser } from '../../api/contract/web-auth.ts';
import type { ClickCaptchaChallenge, ClickCaptchaVerified } from '../../api/contract/web-captcha.ts';
import { launchBrowser, withBrowser } from '../support/browser.ts';
import type { ApiResponse } from '../support/call-api.ts';
import { useFrontProxy, type ForwardedCall } from '../support/front-proxy.ts';
import { readCode } from '../support/mailbox.ts';
import { startOtherApi } from '../support/other-api.ts';
import { attackFromPage, callFromPage, streamFromPage } from '../support/page-calls.ts';
import { solveCaptcha } from '../support/solve-captcha.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { createWebUser, webStoresOf } from '../support/web-client.ts';
import { createEmail, issueCode } from '../support/web-sign-in.ts';

/**
 * Account area sessions in a real browser, because the browser decides which cookies it accepts, sends and shows to
 * scripts.
 */

let stack: TestStack;
let browser: Browser;
test.before(async () => {
  [stack, browser] = await Promise.all([startStack({ mail: true }), launchBrowser()]);
});
test.after.always(async () => {
  await browser?.close();
  await stack?.close();
});

type Scheme = 'http' | 'https';

/** The gateway's page, and pages on other origins that attack it. */
interface Site {
  readonly origin: string;
  /** A page on another origin in the same site: the browser sends the cookies of `origin` with its calls. */
  readonly neighbour: string;
  /** A page on another site. */
  readonly stranger: string;
  readonly prefix: '' | '__Host-';
  /** Calls to `origin`, oldest first. */
  readonly calls: readonly ForwardedCall[];
  /** A browser profile with its own cookies. */
  readonly profile: BrowserContext;
}

async function useSite(t: ExecutionContext, scheme: Scheme): Promise<Site> {
  const isHttps = scheme === 'https';
  let target = stack.url;
  const front = await useFrontProxy(t, { isHttps, findTarget: () => target });
  const { port } = await useFrontProxy(t, { isHttps, findTarget: null });
  // Over http the two origins differ only in their ports, because without PUBLIC_URL there are no `__Host-` cookies.
  const [ownHost, nearHost] = isHttps
    ? ['gateway.pictures.test', 'blog.pictures.test']
    : ['127.0.0.1', '127.0.0.1'];
  const origin = `${scheme}://${ownHost}:${front.port}`;
  // With https other origins may call the API, but this must not let them use the account area.
  if (isHttps) target = await startOtherApi(t, stack, { PUBLIC_URL: origin, CORS_ORIGINS: '*' });
  const profile = await browser.newContext({ ignoreHTTPSErrors: isHttps });
  t.teardown(() => profile.close());
  return {
    origin,
    neighbour: `${scheme}://${nearHost}:${port}`,
    stranger: `${scheme}://stranger.test:${port}`,
    prefix: isHttps ? '__Host-' : '',
    calls: front.calls,
    profile,
  };
}

async function openPage(profile: BrowserContext, origin: string): Promise<Page> {
  const page = await profile.newPage();
  await page.goto(`${origin}/`);
  return page;
}

/** Solves a captcha and requests a mailed code, like the sign-in page. @returns the body of the verify-code request */
async function requestCode(page: Page, email: string): Promise<{ challenge_id: string; code: string }> {
  const post = <T>(path: string, body: object): Promise<ApiResponse<T>> =>
    callFromPage<T>(page, 'POST', path, { body });
  const purpose = 'signup';
  const challenge = await post<ClickCaptchaChallenge>('/auth/captcha/challenge', { purpose });
  const { challenge_id } = challenge.body;
  const points = await solveCaptcha(stack.redis, challenge_id);
  const solved = await post<ClickCaptchaVerified>('/auth/captcha/verify', { challenge_id, points, purpose });
  const { captcha_token } = solved.body;
  const requested = await post<EmailCodeRequested>('/auth/request-code', { email, purpose, captcha_token });
  const code = readCode(await stack.mailbox!.waitForMail(email));
  return { challenge_id: requested.body.challenge_id, code };
}

/** Signs in without captcha and mail, for tests of what follows. */
async function signIn(page: Page, email = createEmail()): Promise<AuthResult> {
  const { challengeId, code } = await issueCode(stack, email);
  const body = { challenge_id: challengeId, code };
  const verified = await callFromPage<AuthResult>(page, 'POST', '/auth/verify-code', { body });
  if (verified.status !== 200) throw new Error(`${verified.status}: ${JSON.stringify(verified.body)}`);
  return verified.body;
}

const readMe = (page: Page) => callFromPage<SignedInUser>(page, 'GET', '/auth/me');

for (const scheme of ['http', 'https'] as const) {
  withBrowser(
    `${scheme}: a page signs in with a captcha and a mailed code, and scripts cannot read the session cookies`,
    async (t) => {
      const { origin, prefix, profile } = await useSite(t, scheme);
      const page = await openPage(profile, origin);
      const email = createEmail();
      const body = await requestCode(page, email);
      const verified = await callFromPage(page, 'POST', '/auth/verify-code', { body });
      t.is(verified.status, 200);

      t.is((await readMe(page)).body.email, email);
      t.is(await page.evaluate<string>('document.cookie'), '');
      const { hostname } = new URL(origin);
      const expected = {
        domain: hostname,
        path: '/',
        httpOnly: true,
        secure: scheme === 'https',
        sameSite: 'Lax',
      };
      const cookies = await profile.cookies();
      t.deepEqual(cookies.map(({ name }) => name).sort(), [`${prefix}mg_refresh`, `${prefix}mg_session`]);
      for (const cookie of cookies) t.like(cookie, expected);
    },
  );

  withBrowser(
    `${scheme}: a reloaded page asks for the CSRF token, makes changes, chats for an account, and signs out`,
    async (t) => {
      const { origin, profile } = await useSite(t, scheme);
      const page = await openPage(profile, origin);
      const { user } = await signIn(page);
      await page.reload();

      const body = { timezone: 'Asia/Tokyo' };
      const early = await callFromPage(page, 'PATCH', '/auth/me', { body });
      t.deepEqual([early.status, early.body.error.code], [403, 'csrf_failed']);
      const { csrf_token: csrfToken } = (await readMe(page)).body;
      t.is((await callFromPage(page, 'PATCH', '/auth/me', { body, csrfToken })).status, 200);
      t.is((await readMe(page)).body.timezone, 'Asia/Tokyo');
      const { id: accountId } = await stack.createAccount();
      const link = await webStoresOf(stack).links.create({ userId: user.id, accountId, label: 'Page' });
      const headers = { 'content-type': 'application/json', 'x-api-account': String(link._id) };
      const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'Hello!' }], stream: true };
      t.regex(await streamFromPage(page, chat, { ...headers, 'x-csrf-token': csrfToken }), /\[DONE\]/);

      t.is((await callFromPage(page, 'POST', '/auth/logout', { csrfToken })).status, 204);
      t.deepEqual(await profile.cookies(), []);
      t.is((await readMe(page)).status, 401);
      t.is((await callFromPage(page, 'POST', '/auth/refresh')).status, 401);
    },
  );

  for (const [kind, description] of [
    [
      'neighbour',
      'calls from another origin of the same site are sent with the cookies, but are rejected because of their Origin',
    ],
    ['stranger', 'calls from another site carry no cookie and change nothing'],
  ] as const) {
    withBrowser(`${scheme}: ${description}`, async (t) => {
      const site = await useSite(t, scheme);
      const ownPage = await openPage(site.profile, site.origin);
      const { user, csrf_token } = await signIn(ownPage);
      const attacker = await openPage(site.profile, site[kind]);
      const before = site.calls.length;
      await attackFromPage(attacker, site.origin, csrf_token);

      const hasCookies = kind === 'neighbour';
      t.deepEqual(
        site.calls
          .slice(before)
          .filter(({ method }) => method !== 'OPTIONS')
          .map(({ method, path, cookie, status }) => ({
            call: `${method} ${path.replace('/v1/web/auth/', '')}`,
            hasCookies: cookie?.includes('mg_') ?? false,
            status,
          })),
        [
          { call: 'POST logout', hasCookies, status: 403 },
          { call: 'POST refresh', hasCookies, status: 403 },
          // The change with a JSON body is not among the calls, because its preflight is rejected.
          { call: 'GET me', hasCookies, status: hasCookies ? 200 : 401 },
          { call: 'POST logout', hasCookies, status: 403 },
        ],
      );
      t.like((await readMe(ownPage)).body, user);
      t.is((await callFromPage(ownPage, 'POST', '/auth/refresh')).status, 200);
    });
  }
}

withBrowser('https: neither a neighbouring host nor plain http can plant a session', async (t) => {
  const { origin, neighbour, calls, profile } = await useSite(t, 'https');
  const { client } = await createWebUser(stack, createEmail());
  const token = client.cookies.get('mg_session')!;
  const plain = await useFrontProxy(t, { isHttps: false, findTarget: null });
  const domain = 'domain=pictures.test; path=/';
  for (const attacker of [neighbour, `http://${new URL(origin).hostname}:${plain.port}`]) {
    const page = await openPage(profile, attacker);
    for (const cookie of [
      `mg_session=${token}; ${domain}`,
      `__Host-mg_session=${token}; ${domain}; secure`,
      `__Host-mg_session=${token}; path=/; secure`,
      `__Host-mg_session=${token}; path=/`,
    ]) {
      await page.evaluate(`document.cookie = '${cookie}'`);
    }
  }
  const page = await openPage(profile, origin);
  t.is((await readMe(page)).status, 401);
  t.is(
    calls.at(-1)!.cookie,
    `mg_session=${token}`,
    'the browser accepts only the cookie whose name the gateway ignores',
  );
});
