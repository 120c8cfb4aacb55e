import test, { type ExecutionContext } from 'ava';
import { callApi } from '../support/call-api.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** An object store behind a network that delays, cuts, or lets nothing through. */

let stack: TestStack;
let account: TestAccount;
/** To an image that was kept while all was well. */
let link: string;

interface ImageAnswer {
  readonly data: readonly { readonly url?: string; readonly b64_json?: string }[];
  readonly error?: { readonly code: string };
}

interface Health {
  readonly status: string;
  readonly checks: Readonly<Record<string, string>>;
}

/** Longer than any bound of ours, so that a call without one is seen for what it is. */
const patienceMs = 60_000;

async function askForImage(format: 'url' | 'b64_json'): Promise<{ status: number; body: ImageAnswer }> {
  const body = { model: 'demo-svg-image', prompt: 'a red fox', size: '256x256', response_format: format };
  return await callApi<ImageAnswer>(stack.url, account.apiKey, 'POST', '/images/generations', body);
}

const readLink = (): Promise<Response> => fetch(link, { signal: AbortSignal.timeout(patienceMs) });

async function readHealth(): Promise<Health> {
  const response = await fetch(`${stack.url}/v1/health`, { signal: AbortSignal.timeout(patienceMs) });
  return (await response.json()) as Health;
}

test.before(async () => {
  stack = await startStack({ holdsS3: true });
  account = await stack.createAccount({ balance: '1000' });
  link = await waitFor('an image that is kept', async () => (await askForImage('url')).body.data?.[0]?.url);
  // It names the address that the stack has for the public.
  link = new URL(new URL(link).pathname, stack.url).href;
});
test.afterEach(() => stack.s3Proxy!.release());
test.after.always(() => stack?.close());

/** With a store that is not there: what needs it is a 503 of its own, what does not goes on, and nothing is charged for links. */
async function checkOutage(t: ExecutionContext): Promise<void> {
  const before = (await stack.readAccount(account.id)).balanceNano;
  const [linked, file, health] = await Promise.all([askForImage('url'), readLink(), readHealth()]);
  t.is(linked.status, 503);
  t.is(linked.body.error?.code, 'service_unavailable');
  t.is(file.status, 503);
  t.is(health.status, 'degraded');
  t.is(health.checks['s3'], 'down');
  t.is((await stack.readAccount(account.id)).balanceNano, before, 'what was not delivered is free');
}

async function checkRecovery(t: ExecutionContext): Promise<void> {
  stack.s3Proxy!.release();
  await waitFor('an image that is kept', async () => (await askForImage('url')).status === 200);
  const file = await readLink();
  t.is(file.status, 200);
  t.true((await file.arrayBuffer()).byteLength > 0);
  await waitFor('the health of it', async () => (await readHealth()).checks['s3'] === 'ok');
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
    const whole = await askForImage('b64_json');
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
    let isLinkAnswered = false;
    const file = readLink().then(() => (isLinkAnswered = true));
    const [whole, health] = await Promise.all([askForImage('b64_json'), readHealth()]);
    t.is(whole.status, 200);
    t.is(health.checks['s3'], 'down');
    t.false(isLinkAnswered, 'neither waits for S3 as long as a link does');
    await file;
    await checkOutage(t);
    await checkRecovery(t);
  },
);
