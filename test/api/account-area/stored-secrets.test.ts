import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { createApiKey } from '../../../shared/accounts/credentials.ts';
import { RefillCodeStore } from '../../../shared/accounts/refill-code-store.ts';
import { captureLog } from '../../support/captured-log.ts';
import { findSecrets } from '../../support/find-secrets.ts';
import { readCode } from '../../support/mailbox.ts';
import { readAllOfMongo } from '../../support/mongo-snapshot.ts';
import { readAllOfRedis } from '../../support/redis-snapshot.ts';
import { solveCaptcha } from '../../support/solve-captcha.ts';
import { useStack, type TestStack } from '../../support/stack.ts';
import { watchRedis } from '../../support/watch-redis.ts';
import { waitFor } from '../../support/wait-for.ts';
import { WebClient } from '../../support/web-client.ts';

/** No store, file of a store or log contains a code, token or key that would grant access. */

/** A user who performs every action, and a record of every secret that the user receives in clear text. */
class UserSession {
  readonly secrets = new Map<string, string>();
  readonly #stack: TestStack;
  readonly client: WebClient;

  constructor(stack: TestStack) {
    this.#stack = stack;
    this.client = new WebClient(stack.url, { userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0' });
  }

  record(name: string, secret: string): string {
    this.secrets.set(name, secret);
    return secret;
  }

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.client.request(method, path, body);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (response.status === 204 ? null : await response.json()) as T;
  }

  async earnCaptchaToken(name: string): Promise<string> {
    const { challenge_id } = await this.call<{ challenge_id: string }>('POST', '/auth/captcha/challenge', {
      purpose: 'signup',
    });
    const points = await solveCaptcha(this.#stack.redis, challenge_id);
    const body = { challenge_id, points };
    const { captcha_token } = await this.call<{ captcha_token: string }>(
      'POST',
      '/auth/captcha/verify',
      body,
    );
    return this.record(name, captcha_token);
  }

  /** @returns the challenge's id */
  async requestCode(email: string): Promise<string> {
    const captcha_token = await this.earnCaptchaToken(`captcha token for ${email}`);
    const body = { email, purpose: 'signup', captcha_token };
    return (await this.call<{ challenge_id: string }>('POST', '/auth/request-code', body)).challenge_id;
  }

  async readMailedCode(name: string, email: string): Promise<string> {
    const mail = await this.#stack.mailbox!.waitForMail(email, ({ text }) => /^\s*\d{6}$/m.test(text ?? ''));
    return this.record(name, readCode(mail));
  }

  recordTokens(name: string): void {
    for (const [cookie, token] of this.client.cookies) this.record(`${name}: ${cookie}`, token);
    this.record(`${name}: CSRF token`, this.client.csrfToken!);
  }

  /** Requests a code that confirms an action, and uses it if an action is given. */
  async confirm<T>(
    path: string,
    email: string,
    action?: readonly [method: string, path: string],
  ): Promise<T> {
    const { challenge_id } = await this.call<{ challenge_id: string }>('POST', `${path}/request-code`, {
      email,
    });
    const code = await this.readMailedCode(
      `code of ${path}, ${action === undefined ? 'unused' : 'used'}`,
      email,
    );
    return action === undefined ? (null as T) : await this.call<T>(...action, { challenge_id, code });
  }
}

async function readFiles(dir: string): Promise<string> {
  const files = await readdir(dir, { recursive: true, withFileTypes: true });
  const texts = files
    .filter((file) => file.isFile())
    .map((file) => readFile(join(file.parentPath, file.name), 'latin1'));
  return (await Promise.all(texts)).join('\n');
}

test('neither the stores, their files, the commands to Redis nor logs of any level contain a code, token or key in clear text', async (t) => {
  const captured = captureLog('trace');
  const stack = await useStack(t, {
    mail: true,
    log: captured.log,
    env: { WEB_CAPTCHA: 'on', LOG_LEVEL: 'trace' },
  });
  const commands = await watchRedis(t, stack.config.redisUrl);
  const session = new UserSession(stack);
  const { client } = session;
  const email = 'life@example.com';

  const challenge_id = await session.requestCode(email);
  const code = await session.readMailedCode('code of the sign-in, used', email);
  const wrongAttempt = await client.request('POST', '/auth/verify-code', { challenge_id, code: 'wrong' });
  t.is(wrongAttempt.status, 422);
  const signedIn = await client.request('POST', '/auth/verify-code', {
    challenge_id,
    code,
    remember_me: true,
  });
  await client.keepResult(signedIn);
  session.recordTokens('sign-in');
  await client.keepResult(await client.request('POST', '/auth/refresh'));
  session.recordTokens('refresh');
  await session.requestCode(email);
  await session.readMailedCode('code of the sign-in, unused', email);
  await session.earnCaptchaToken('captcha token, unused');

  const first = await session.call<{ account: { id: number }; api_key: string }>(
    'POST',
    '/api-accounts/first',
    {},
  );
  session.record('key of the first account, replaced', first.api_key);
  const other = await stack.createAccount();
  const body = { api_key: session.record('key of the linked account', other.apiKey) };
  const linked = await session.call<{ id: number }>('POST', '/api-accounts/link', body);
  const unknownKey = { api_key: session.record('key that no account has', createApiKey()) };
  t.is((await client.request('POST', '/api-accounts/link', unknownKey)).status, 401);

  const codes = new RefillCodeStore(stack.mongo.db);
  const value = { balanceNano: 1_000_000_000n, freeRequests: 0, expiresAt: null };
  const [redeemable, unused] = await codes.create(2, value);
  session.record('refill code, unused', unused!);
  const path = `/api-accounts/${first.account.id}`;
  await session.call('POST', `${path}/redeem`, { code: redeemable });

  const revealed = await session.confirm<{ api_key: string }>(`${path}/reveal`, email, [
    'POST',
    `${path}/reveal`,
  ]);
  t.is(revealed.api_key, first.api_key);
  const replacing = ['PUT', `${path}/regenerate-api-key`] as const;
  const replaced = await session.confirm<{ api_key: string }>(replacing[1], email, replacing);
  session.record('key of the first account', replaced.api_key);
  for (const action of ['reveal', 'regenerate-api-key', 'unlink'])
    await session.confirm(`${path}/${action}`, email);
  const otherPath = `/api-accounts/${linked.id}`;
  await session.confirm(`${otherPath}/unlink`, email, ['DELETE', otherPath]);
  const authorization = `Bearer ${replaced.api_key}`;
  t.is((await fetch(`${stack.url}/v1/users/profile`, { headers: { authorization } })).status, 200);

  // While the mail server hangs, some mails are being sent and the others are queued.
  const releaseMails = stack.mailbox!.hold();
  const waiting = Array.from({ length: 7 }, (_, i) => `waiting-${i}@example.com`);
  const received = stack.mailbox!.received.length;
  for (const address of waiting) await session.requestCode(address);
  await waitFor(
    'the mails that can be sent concurrently',
    () => stack.mailbox!.received.length === received + 5,
  );
  const inRedis = await readAllOfRedis(stack.redis);
  t.true(inRedis.includes('sealed'));
  releaseMails();
  for (const address of waiting) await session.readMailedCode(`code of ${address}`, address);

  const found = {
    inRedis: findSecrets(inRedis, session.secrets),
    toRedis: findSecrets(JSON.stringify(commands), session.secrets),
    inMongo: findSecrets(await readAllOfMongo(stack.mongo.db), session.secrets),
    inFiles: findSecrets(await readFiles(stack.dir), session.secrets),
    inLogs: findSecrets(JSON.stringify(captured.lines), session.secrets),
  };
  t.deepEqual(found, { inRedis: [], toRedis: [], inMongo: [], inFiles: [], inLogs: [] });

  // Checks that there was data to search: each store contains the expected entries.
  t.true(inRedis.includes('email-code'));
  t.true(commands.some(({ args }) => args.includes('email-code')));
  t.true((await readAllOfMongo(stack.mongo.db)).includes(email));
  t.true((await readFiles(stack.dir)).includes('web_sessions'));
  t.true(captured.lines.some(({ path: requestPath }) => requestPath === '/v1/web/auth/verify-code'));
  t.log(`${session.secrets.size} secrets`);

  // Checks that the search would find a leaked secret.
  await stack.redis.hset('leak', 'a', JSON.stringify({ token: client.csrfToken }));
  await stack.redis.xadd('leak-stream', '*', 'code', Buffer.from(`code ${code}`).toString('base64'));
  await stack.mongo.db
    .collection<{ _id: string; key: string }>('leak')
    .insertOne({ _id: 'x', key: replaced.api_key });
  captured.log.trace({ deep: { command: [`EX ${code}`] } });
  t.deepEqual(findSecrets(await readAllOfRedis(stack.redis), session.secrets).toSorted(), [
    'code of the sign-in, used in another form',
    'refresh: CSRF token in clear',
  ]);
  const inMongo = findSecrets(await readAllOfMongo(stack.mongo.db), session.secrets);
  t.deepEqual(inMongo, ['key of the first account in clear']);
  t.deepEqual(findSecrets(await readFiles(stack.dir), session.secrets), inMongo);
  t.deepEqual(findSecrets(JSON.stringify(captured.lines), session.secrets), [
    'code of the sign-in, used in clear',
  ]);
});

test('the search finds a secret in clear text, in base64 at any offset, in hexadecimal, and a code as a plain hash', (t) => {
  const secrets = new Map([
    ['code', '493021'],
    ['token', 'Zx_3~secret-token-0123456789'],
  ]);
  for (const [name, secret] of secrets) {
    t.deepEqual(findSecrets(`"${secret}"`, secrets), [`${name} in clear`]);
    for (const before of ['', 'a', 'ab', 'abc'])
      for (const encoding of ['base64', 'base64url', 'hex'] as const) {
        const text = Buffer.from(`${before}${secret} and more`).toString(encoding);
        t.deepEqual(findSecrets(text, secrets), [`${name} in another form`], `${before} ${encoding}`);
      }
  }
  t.deepEqual(findSecrets('1493021 493021.5e3 0.493021 a493021', secrets), ['code in clear']);
  t.deepEqual(findSecrets('1493021 0.493021 a493021 4930210', secrets), []);
});
