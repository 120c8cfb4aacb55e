import test, { type ExecutionContext } from 'ava';
import { callApi } from '../support/call-api.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** An object store behind a network that delays, cuts, or lets nothing through. */

let stack: TestStack;
let account: TestAccount;
/** Pays for images that need no S3. */
let other: TestAccount;
/** To an image that was kept while all was well. */
let link: string;

interface ImageResponse {
  readonly data: readonly { readonly url?: string; readonly b64_json?: string }[];
  readonly error?: { readonly code: string };
}

interface Health {
  readonly status: string;
  readonly checks: Readonly<Record<string, string>>;
}

/** Longer than any bound of ours, so that a call without one is seen for what it is. */
const patienceMs = 60_000;

async function askForImage(
  format: 'url' | 'b64_json',
  of = account,
): Promise<{ status: number; body: ImageResponse }> {
  const body = { model: 'demo-svg-image', prompt: 'a red fox', size: '256x256', response_format: format };
  return await callApi<ImageResponse>(stack.url, of.apiKey, 'POST', '/images/generations', body);
}

const readLink = (): Promise<Response> => fetch(link, { signal: AbortSignal.timeout(patienceMs) });

async function readHealth(): Promise<Health> {
  const response = await fetch(`${stack.url}/v1/health`, { signal: AbortSignal.timeout(patienceMs) });
  return (await response.json()) as Health;
}

/** What was found is told for a second to all who ask. */
const waitForHealth = (state: 'ok' | 'down'): Promise<Health> =>
  waitFor(`S3 to be ${state}`, async () => {
    const health = await readHealth();
    return health.checks['s3'] === state && health;
  });

test.before(async () => {
  stack = await startStack({ holdsS3: true });
  account = await stack.createAccount();
  other = await stack.createAccount();
  link = await waitFor('an image that is kept', async () => (await askForImage('url')).body.data?.[0]?.url);
  // It names the address that the stack has for the public.
  link = new URL(new URL(link).pathname, stack.url).href;
});
test.afterEach(() => stack.s3Proxy!.release());
test.after.always(() => stack?.close());

/** With a store that is not there: what needs it is a 503 of its own, what does not goes on, and nothing is charged for links. */
async function checkOutage(t: ExecutionContext): Promise<void> {
  const before = (await stack.readAccount(account.id)).balanceNano;
  const beganMs = performance.now();
  const log = <T>(what: string, call: Promise<T>): Promise<T> =>
    call.finally(() => t.log(`${what} ended after ${Math.round(performance.now() - beganMs)} ms`));
  const [linked, file, health] = await Promise.all([
    log('an image by link', askForImage('url')),
    log('a link', readLink()),
    log('health', waitForHealth('down')),
  ]);
  t.is(linked.status, 503);
  t.is(linked.body.error?.code, 'service_unavailable');
  t.is(file.status, 503);
  t.is(health.status, 'degraded');
  t.is((await stack.readAccount(account.id)).balanceNano, before, 'what was not delivered is free');
}

async function checkRecovery(t: ExecutionContext): Promise<void> {
  stack.s3Proxy!.release();
  await waitFor('an image that is kept', async () => (await askForImage('url')).status === 200);
  const file = await readLink();
  t.is(file.status, 200);
  t.true((await file.arrayBuffer()).byteLength > 0);
  await waitForHealth('ok');
}

test.serial('an S3 that answers late serves images and links all the same', async (t) => {
  stack.s3Proxy!.delay(200);
  t.is((await askForImage('url')).status, 200);
  const file = await readLink();
  t.is(file.status, 200);
  t.true((await file.arrayBuffer()).byteLength > 0);
});

test.serial(
  'an S3 that cuts every connection is a 503 where it is needed, and no more once it is back',
  async (t) => {
    stack.s3Proxy!.cut();
    const whole = await askForImage('b64_json', other);
    t.is(whole.status, 200);
    await checkOutage(t);
    await checkRecovery(t);
  },
);

test.serial(
  'with an S3 that hangs whole images and health answer at once, all else is a 503 within its bound',
  async (t) => {
    t.timeout(2 * patienceMs);
    stack.s3Proxy!.hang();
    let isOver = false;
    const outage = checkOutage(t).then(() => (isOver = true));
    t.is((await askForImage('b64_json', other)).status, 200);
    await waitForHealth('down');
    t.false(isOver, 'neither waits for S3 as long as a link does');
    await outage;
    await checkRecovery(t);
  },
);
