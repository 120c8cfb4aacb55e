import test, { type ExecutionContext } from 'ava';
import { callApi } from '../support/call-api.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** An object store behind a network that delays, interrupts or blocks traffic. */

let stack: TestStack;
let account: TestAccount;
/** An account for inline images, which do not need S3. */
let other: TestAccount;
/** A link to an image stored while everything worked. */
let link: string;

interface ImageResponse {
  readonly data: readonly { readonly url?: string; readonly b64_json?: string }[];
  readonly error?: { readonly code: string };
}

interface Health {
  readonly status: string;
  readonly checks: Readonly<Record<string, string>>;
}

/** Longer than any of the product's timeouts, so that a call without a timeout is noticed. */
const timeoutMs = 60_000;

async function createImage(
  format: 'url' | 'b64_json',
  of = account,
): Promise<{ status: number; body: ImageResponse }> {
  const body = { model: 'demo-svg-image', prompt: 'a red fox', size: '256x256', response_format: format };
  return await callApi<ImageResponse>(stack.url, of.apiKey, 'POST', '/images/generations', body);
}

const readLink = (): Promise<Response> => fetch(link, { signal: AbortSignal.timeout(timeoutMs) });

async function readHealth(): Promise<Health> {
  const response = await fetch(`${stack.url}/v1/health`, { signal: AbortSignal.timeout(timeoutMs) });
  return (await response.json()) as Health;
}

/** Waits, because the health result is cached for a second. */
const waitForHealth = (state: 'ok' | 'down'): Promise<Health> =>
  waitFor(`S3 to be ${state}`, async () => {
    const health = await readHealth();
    return health.checks['s3'] === state && health;
  });

test.before(async () => {
  stack = await startStack({ holdsS3: true });
  account = await stack.createAccount();
  other = await stack.createAccount();
  link = await waitFor('a stored image', async () => (await createImage('url')).body.data?.[0]?.url);
  // Replaces the public address in the link by the address of the stack.
  link = new URL(new URL(link).pathname, stack.url).href;
});
test.afterEach(() => stack.s3Proxy!.release());
test.after.always(() => stack?.close());

/** While S3 is down, calls that need it get a 503 and are not charged, and all other calls work. */
async function checkOutage(t: ExecutionContext): Promise<void> {
  const before = (await stack.readAccount(account.id)).balanceNano;
  const beganMs = performance.now();
  const log = <T>(what: string, call: Promise<T>): Promise<T> =>
    call.finally(() => t.log(`${what} ended after ${Math.round(performance.now() - beganMs)} ms`));
  const [linked, file, health] = await Promise.all([
    log('an image by link', createImage('url')),
    log('a link', readLink()),
    log('health', waitForHealth('down')),
  ]);
  t.is(linked.status, 503);
  t.is(linked.body.error?.code, 'service_unavailable');
  t.is(file.status, 503);
  t.is(health.status, 'degraded');
  t.is((await stack.readAccount(account.id)).balanceNano, before, 'undelivered images are free');
}

async function checkRecovery(t: ExecutionContext): Promise<void> {
  stack.s3Proxy!.release();
  await waitFor('a stored image', async () => (await createImage('url')).status === 200);
  const file = await readLink();
  t.is(file.status, 200);
  t.true((await file.arrayBuffer()).byteLength > 0);
  await waitForHealth('ok');
}

test.serial('if S3 replies slowly, images and links still work', async (t) => {
  stack.s3Proxy!.delay(200);
  t.is((await createImage('url')).status, 200);
  const file = await readLink();
  t.is(file.status, 200);
  t.true((await file.arrayBuffer()).byteLength > 0);
});

test.serial(
  'if S3 cuts every connection, only calls that need S3 get a 503, and only until S3 is back',
  async (t) => {
    stack.s3Proxy!.cut();
    const whole = await createImage('b64_json', other);
    t.is(whole.status, 200);
    await checkOutage(t);
    await checkRecovery(t);
  },
);

test.serial(
  'if S3 hangs, inline images and health respond immediately, and calls that need S3 get a 503 in time',
  async (t) => {
    t.timeout(2 * timeoutMs);
    stack.s3Proxy!.hang();
    let isDone = false;
    const outage = checkOutage(t).then(() => (isDone = true));
    t.is((await createImage('b64_json', other)).status, 200);
    await waitForHealth('down');
    t.false(isDone, 'inline images and health do not wait for S3 as long as a link does');
    await outage;
    await checkRecovery(t);
  },
);
