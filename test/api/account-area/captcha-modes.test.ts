import test, { type ExecutionContext } from 'ava';
import { CaptchaStore } from '../../../api/account-area/captcha/captcha-store.ts';
import type { ClickCaptchaChallenge, ClickCaptchaVerified } from '../../../api/contract/web-captcha.ts';
import { startOtherApi } from '../../support/other-api.ts';
import { readErrorCode } from '../../support/read-error.ts';
import { solveCaptcha } from '../../support/solve-captcha.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { WebClient } from '../../support/web-client.ts';
import { checkLimited, countAttempts, createAddress, createEmail, from } from '../../support/web-sign-in.ts';

/** Requests for a code with required, optional and disabled captchas. */

let stack: TestStack;
test.before(async () => {
  // Captchas are required by default.
  stack = await startStack({
    workers: [],
    env: { TRUST_PROXY: 'on', SUPPORT_EMAIL: 'help@gateway.example' },
  });
});
test.after.always(() => stack?.close());

const startWith = (t: ExecutionContext, WEB_CAPTCHA: string): Promise<string> =>
  startOtherApi(t, stack, { WEB_CAPTCHA });

async function post<T>(path: string, body: unknown, address = createAddress()): Promise<T> {
  const client = new WebClient(stack.url, { headers: from(address) });
  return (await (await client.request('POST', path, body)).json()) as T;
}

const createToken = (network: string, purpose: 'login' | 'signup' = 'login'): Promise<string> =>
  new CaptchaStore(stack.redis).addToken({ purpose, network });

interface CodeRequest {
  readonly url?: string;
  readonly address?: string;
  readonly email?: string;
  readonly purpose?: 'login' | 'signup';
  readonly captcha_token?: string | null;
}

const requestCode = ({
  url = stack.url,
  address = createAddress(),
  ...body
}: CodeRequest): Promise<Response> =>
  new WebClient(url, { headers: from(address) }).request('POST', '/auth/request-code', {
    email: createEmail(),
    ...body,
  });

test('solving a captcha gets a code mailed, once', async (t) => {
  const address = createAddress();
  const challenge = await post<ClickCaptchaChallenge>(
    '/auth/captcha/challenge',
    { purpose: 'signup' },
    address,
  );
  t.like(challenge, { width: 480, height: 320, expires_in: 300 });
  for (const image of [challenge.image, challenge.prompt_image]) t.regex(image, /^data:image\/webp;base64,/);
  const { challenge_id } = challenge;
  const points = await solveCaptcha(stack.redis, challenge_id);
  const solved = await post<ClickCaptchaVerified>('/auth/captcha/verify', { challenge_id, points }, address);
  t.true(solved.success);
  const request = { address, purpose: 'signup', captcha_token: solved.captcha_token! } as const;
  t.is((await requestCode(request)).status, 201);
  t.is(await readErrorCode(await requestCode(request), 422), 'captcha_failed');
});

test('wrong clicks, and an unknown or already attempted challenge, get a response without a token', async (t) => {
  const address = createAddress();
  const { challenge_id } = await post<ClickCaptchaChallenge>(
    '/auth/captcha/challenge',
    { purpose: 'login' },
    address,
  );
  const points = await solveCaptcha(stack.redis, challenge_id);
  const failed = { success: false, captcha_token: null };
  const wrongAnswer = { challenge_id, points: points.toReversed() };
  t.deepEqual(await post('/auth/captcha/verify', wrongAnswer, address), failed);
  t.deepEqual(await post('/auth/captcha/verify', { challenge_id, points }, address), failed);
  const unknown = { challenge_id: 'x'.repeat(32), points };
  t.deepEqual(await post('/auth/captcha/verify', unknown, address), failed);
});

test('without a captcha, or with one for another purpose or address, no code is mailed, and the token is consumed', async (t) => {
  const address = createAddress();
  for (const captcha_token of [undefined, null, 'x'.repeat(43)]) {
    const rejection = await requestCode({
      address,
      ...(captcha_token === undefined ? {} : { captcha_token }),
    });
    t.is(rejection.status, 422);
    t.like(await rejection.json(), {
      error: { code: 'captcha_failed' },
      detail: [{ loc: ['body', 'captcha_token'], type: 'captcha_failed' }],
    });
  }
  const misused = [{ purpose: 'signup' }, { address: createAddress() }] as const;
  for (const misuse of misused) {
    const captcha_token = await createToken(address);
    t.is(
      await readErrorCode(await requestCode({ address, captcha_token, ...misuse }), 422),
      'captcha_failed',
    );
    t.is(await readErrorCode(await requestCode({ address, captcha_token }), 422), 'captcha_failed');
  }
  const captcha_token = await createToken(address);
  t.is((await requestCode({ address, captcha_token })).status, 201);
});

test('ten simultaneous requests with one token get one code mailed', async (t) => {
  const address = createAddress();
  const captcha_token = await createToken(address);
  const responses = await Promise.all(
    Array.from({ length: 10 }, () => requestCode({ address, captcha_token })),
  );
  t.deepEqual(
    responses.map(({ status }) => status).sort((a, b) => a - b),
    [201, ...Array<number>(9).fill(422)],
  );
});

test('with captchas off, a token is neither needed nor checked, and challenges are still issued', async (t) => {
  const url = await startWith(t, 'off');
  t.is((await requestCode({ url })).status, 201);
  t.is((await requestCode({ url, captcha_token: 'x'.repeat(43) })).status, 201);
  const client = new WebClient(url);
  t.is((await client.request('POST', '/auth/captcha/challenge', { purpose: 'login' })).status, 201);
});

test('with optional captchas a mailbox gets three codes an hour without one, and more with one', async (t) => {
  const url = await startWith(t, 'optional');
  const email = createEmail();
  for (let i = 0; i < 3; i++) t.is((await requestCode({ url, email })).status, 201);
  await checkLimited(t, await requestCode({ url, email }));
  const address = createAddress();
  const captcha_token = await createToken(address);
  t.is((await requestCode({ url, email, address, captcha_token })).status, 201);
  t.is(await readErrorCode(await requestCode({ url, captcha_token: 'x'.repeat(43) }), 422), 'captcha_failed');
});

test('with optional captchas a client address gets ten codes an hour without one, and more with one', async (t) => {
  const url = await startWith(t, 'optional');
  const address = createAddress();
  await countAttempts(stack, 'codes-without-captcha-network', address, 9);
  t.is((await requestCode({ url, address })).status, 201);
  await checkLimited(t, await requestCode({ url, address }));
  t.is((await requestCode({ url, address, captcha_token: await createToken(address) })).status, 201);
});

test('a client address may request sixty captchas a minute, and submit sixty answers', async (t) => {
  const address = createAddress();
  const client = new WebClient(stack.url, { headers: from(address) });
  await countAttempts(stack, 'captcha-challenges-network', address, 60);
  await checkLimited(t, await client.request('POST', '/auth/captcha/challenge', { purpose: 'login' }), 60);
  await countAttempts(stack, 'captcha-verifications-network', address, 60);
  const answer = {
    challenge_id: 'x'.repeat(32),
    points: [
      { x: 1, y: 1 },
      { x: 2, y: 2 },
    ],
  };
  await checkLimited(t, await client.request('POST', '/auth/captcha/verify', answer), 60);
});

test('the configuration of the account area tells a page what it needs, including whether a captcha is required', async (t) => {
  const read = async (url: string): Promise<unknown> =>
    (await new WebClient(url).request('GET', '/config')).json();
  const config = {
    name: 'Model Gateway',
    logo_url: null,
    terms_url: null,
    privacy_url: null,
    footer_text: null,
    api_base_url: `${stack.url}/v1`,
    support_email: 'help@gateway.example',
    signup_enabled: true,
    captcha_required: true,
    captcha_mode: 'on',
    default_account_label: 'Основной',
    keys_shown_again: true,
    currency: 'RUB',
    code_ttl_seconds: 600,
  };
  t.deepEqual(await read(stack.url), config);
  const env = {
    WEB_CAPTCHA: 'optional',
    SIGNUP: 'off',
    REVEAL: 'off',
    PUBLIC_URL: 'https://gateway.example',
    MAIL_FROM: 'Шлюз <a@b.example>',
  };
  t.deepEqual(await read(await startOtherApi(t, stack, env)), {
    ...config,
    name: 'Шлюз',
    api_base_url: 'https://gateway.example/v1',
    signup_enabled: false,
    keys_shown_again: false,
    captcha_required: false,
    captcha_mode: 'optional',
  });
  t.like(await read(await startWith(t, 'off')), { captcha_required: false, captcha_mode: 'off' });
});
