import { randomUUID } from 'node:crypto';
import test from 'ava';
import { findMailCode } from '../../../scripts/embedded/smtp/read-mail.ts';
import { readCode } from '../../support/mailbox.ts';
import { startOtherApi } from '../../support/other-api.ts';
import { readErrorCode } from '../../support/read-error.ts';
import { allQueues, startStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { watchRedis, type WatchedCommand } from '../../support/watch-redis.ts';
import { WebClient, webStoresOf } from '../../support/web-client.ts';
import {
  checkLimited,
  countAttempts,
  createAddress,
  createEmail,
  from,
  issueCode,
  verifyCode,
} from '../../support/web-sign-in.ts';

/** The information that requesting a code reveals, and its rate limits. */

let stack: TestStack;
test.before(async () => {
  const env = { WEB_CAPTCHA: 'off', TRUST_PROXY: 'on' };
  // No worker is started yet, so that all MongoDB queries come from the api.
  stack = await startStack({ mail: true, holdsMongo: true, workers: [], env });
});
test.after.always(() => stack?.close());

const requestCode = (body: object, address = createAddress(), language = 'en'): Promise<Response> =>
  new WebClient(stack.url, { headers: from(address), language }).request('POST', '/auth/request-code', body);

interface CodeRequest {
  readonly email: string;
  readonly isKnown: boolean;
  readonly purpose: 'login' | 'signup';
}

/**
 * The Redis commands of a request, each with its number of arguments. Periodic commands of the process are left out.
 */
const describeCommands = (commands: readonly WatchedCommand[]): string[] =>
  commands
    .filter(({ args }) => args.includes('{web}') || args.includes(':mail:'))
    .map(({ name, args }) => `${name} ${args.split('" "').length}`);

test.serial(
  'requesting a code does not reveal whether an address has a user: response and Redis commands are the same, and MongoDB is unused',
  async (t) => {
    const { users } = webStoresOf(stack);
    const requests: CodeRequest[] = [];
    for (const isKnown of [true, false]) {
      for (const purpose of ['login', 'signup'] as const) {
        const email = createEmail();
        if (isKnown) await users.findOrCreate(email, { language: 'ru' });
        requests.push({ email, isKnown, purpose });
      }
    }
    // One request before the comparison, so that scripts are loaded.
    await requestCode({ email: createEmail() });
    const commands = await watchRedis(t, stack.config.redisUrl);
    const observations = [];
    const challenges: string[] = [];
    for (const [i, { email, purpose }] of requests.entries()) {
      const [first, before] = [commands.length, stack.mongoProxy!.countSent('web_')];
      const response = await requestCode({ email, purpose });
      t.is(response.status, 201);
      const { challenge_id, expires_at, ...more } = (await response.json()) as Record<string, string>;
      t.deepEqual(more, {});
      t.true(Math.abs(Date.parse(expires_at!) - Date.now() - 600_000) < 60_000);
      t.is(stack.mongoProxy!.countSent('web_'), before);
      await stack.redis.echo(`end-of-${i}`);
      await waitFor('the monitor to show all commands', () =>
        commands.some(({ args }) => args.includes(`end-of-${i}`)),
      );
      const headers = [...response.headers].filter(([name]) => !['date', 'x-request-id'].includes(name));
      observations.push({ headers, commands: describeCommands(commands.slice(first)) });
      challenges.push(challenge_id!);
    }
    const [first, ...others] = observations;
    t.true(first!.commands.length >= 3, first!.commands.join());
    for (const other of others) t.deepEqual(other, first);

    await stack.startWorker(allQueues);
    for (const [i, { email, isKnown, purpose }] of requests.entries()) {
      const mail = await stack.mailbox!.waitForMail(email);
      const hasCode = isKnown || purpose === 'signup';
      t.is(findMailCode(mail.text) !== null, hasCode, `${isKnown ? 'known' : 'unknown'} ${purpose}`);
      if (!hasCode) {
        t.regex(mail.text!, /nobody has signed up with this address/);
        continue;
      }
      const challenge = { challengeId: challenges[i]!, code: readCode(mail) };
      t.is((await verifyCode(new WebClient(stack.url), challenge)).status, 200);
    }
  },
);

test.serial('a code can be requested while MongoDB hangs, and is mailed once it responds', async (t) => {
  const email = createEmail();
  t.teardown(() => stack.mongoProxy!.release());
  stack.mongoProxy!.hold('web_users');
  t.is((await requestCode({ email, purpose: 'signup' })).status, 201);
  await waitFor('the worker to look up the address', () => stack.mongoProxy!.countSent(email) > 0);
  t.false(stack.mailbox!.received.some(({ recipient }) => recipient === email));
  stack.mongoProxy!.release();
  t.truthy(readCode(await stack.mailbox!.waitForMail(email)));
});

test('mails are in the language of the browser', async (t) => {
  const email = createEmail();
  for (const [language, subject] of [
    ['en-GB,en;q=0.9', /^Your sign-up code/],
    ['ru,en;q=0.5', /^Код/],
    ['de', /^Код/],
  ] as const) {
    await requestCode({ email, purpose: 'signup' }, createAddress(), language);
    t.regex((await stack.mailbox!.waitForMail(email)).subject!, subject, language);
  }
});

test('a mailbox gets ten codes an hour, over all client addresses and purposes together', async (t) => {
  const email = createEmail();
  for (let i = 0; i < 10; i++) {
    const body = {
      email: i % 2 === 0 ? email : email.toUpperCase(),
      purpose: i % 3 === 0 ? 'signup' : 'login',
    };
    t.is((await requestCode(body)).status, 201);
  }
  const address = createAddress();
  await checkLimited(t, await requestCode({ email }, address));
  t.is((await requestCode({ email: createEmail() }, address)).status, 201, 'other mailboxes are unaffected');
});

test('at most a hundred codes an hour are mailed for one client address, or one IPv6 /64', async (t) => {
  for (const [network, one, other, outside] of [
    ['198.18.0.1', '198.18.0.1', '198.18.0.1', '198.18.0.2'],
    ['2001:db8:0:9::/64', '2001:db8:0:9::1', '2001:db8:0:9:ffff::2', '2001:db8:0:a::1'],
  ] as const) {
    await countAttempts(stack, 'mailed-codes-network', network, 99);
    t.is((await requestCode({ email: createEmail() }, one)).status, 201);
    const email = createEmail();
    await checkLimited(t, await requestCode({ email }, other));
    t.is((await requestCode({ email }, outside)).status, 201);
  }
});

test('a client address may enter a hundred wrong codes an hour, and a right code rejected because of that stays valid', async (t) => {
  const address = '198.18.1.1';
  const client = new WebClient(stack.url, { headers: from(address) });
  await countAttempts(stack, 'wrong-codes-network', address, 99);
  const [code, other] = [await issueCode(stack, createEmail()), await issueCode(stack, createEmail())];
  t.is(await readErrorCode(await verifyCode(client, { ...other, code: 'x' }), 422), 'invalid_code');
  await checkLimited(t, await verifyCode(client, code));
  const elsewhere = new WebClient(stack.url, { headers: from('198.18.1.2') });
  t.is((await verifyCode(elsewhere, code)).status, 200);
});

test('a code entered during a MongoDB outage is a 503, and is still valid afterwards', async (t) => {
  const url = await startOtherApi(t, stack, { MONGODB_URL: 'mongodb://127.0.0.1:1' });
  const code = await issueCode(stack, createEmail());
  const client = new WebClient(stack.url, { headers: from(createAddress()) });
  const clientInOutage = new WebClient(url, { headers: from(createAddress()) });
  t.is(await readErrorCode(await verifyCode(clientInOutage, code), 503), 'service_unavailable');
  t.is((await verifyCode(client, code)).status, 200);
});

test('attempts at unknown, used or unrelated challenges do not count towards the limit of wrong codes', async (t) => {
  const address = '198.18.1.3';
  const client = new WebClient(stack.url, { headers: from(address) });
  await countAttempts(stack, 'wrong-codes-network', address, 99);
  const [code, used] = [await issueCode(stack, createEmail()), await issueCode(stack, createEmail())];
  t.is((await verifyCode(client, used)).status, 200);
  const unknown = [
    used,
    { ...code, challengeId: randomUUID() },
    await issueCode(stack, createEmail(), 'reveal'),
  ];
  for (const entered of unknown)
    t.is(await readErrorCode(await verifyCode(client, entered), 422), 'invalid_code');
  t.is((await verifyCode(client, code)).status, 200);
});
