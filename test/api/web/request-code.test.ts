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

/** What somebody learns who asks for codes, and how often they can. */

let stack: TestStack;
test.before(async () => {
  const env = { WEB_CAPTCHA: 'off', TRUST_PROXY: 'on' };
  // No worker yet: what MongoDB is asked then is asked by the api.
  stack = await startStack({ mail: true, holdsMongo: true, workers: [], env });
});
test.after.always(() => stack?.close());

const ask = (body: object, address = createAddress(), language = 'en'): Promise<Response> =>
  new WebClient(stack.url, { headers: from(address), language }).request('POST', '/auth/request-code', body);

interface Asked {
  readonly email: string;
  readonly isKnown: boolean;
  readonly purpose: 'login' | 'signup';
}

/** What Redis was asked for this: each command with the number of its arguments. What the process does by the clock is left out. */
const describeCommands = (commands: readonly WatchedCommand[]): string[] =>
  commands
    .filter(({ args }) => args.includes('{web}') || args.includes(':mail:'))
    .map(({ name, args }) => `${name} ${args.split('" "').length}`);

test.serial(
  'nobody learns whether an address has a user: the answer is the same, MongoDB is not asked, Redis is asked the same',
  async (t) => {
    const { users } = webStoresOf(stack);
    const asked: Asked[] = [];
    for (const isKnown of [true, false]) {
      for (const purpose of ['login', 'signup'] as const) {
        const email = createEmail();
        if (isKnown) await users.findOrCreate(email, { language: 'ru' });
        asked.push({ email, isKnown, purpose });
      }
    }
    // Once outside of the comparison, so that scripts are loaded.
    await ask({ email: createEmail() });
    const commands = await watchRedis(t, stack.config.redisUrl);
    const answers = [];
    const challenges: string[] = [];
    for (const [i, { email, purpose }] of asked.entries()) {
      const [first, before] = [commands.length, stack.mongoProxy!.countSent('web_')];
      const response = await ask({ email, purpose });
      t.is(response.status, 201);
      const { challenge_id, expires_at, ...more } = (await response.json()) as Record<string, string>;
      t.deepEqual(more, {});
      t.true(Math.abs(Date.parse(expires_at!) - Date.now() - 600_000) < 60_000);
      t.is(stack.mongoProxy!.countSent('web_'), before);
      await stack.redis.echo(`end-of-${i}`);
      await waitFor('Redis to show all', () => commands.some(({ args }) => args.includes(`end-of-${i}`)));
      const headers = [...response.headers].filter(([name]) => !['date', 'x-request-id'].includes(name));
      answers.push({ headers, commands: describeCommands(commands.slice(first)) });
      challenges.push(challenge_id!);
    }
    const [first, ...others] = answers;
    t.true(first!.commands.length >= 3, first!.commands.join());
    for (const other of others) t.deepEqual(other, first);

    await stack.startWorker(allQueues);
    for (const [i, { email, isKnown, purpose }] of asked.entries()) {
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

test.serial('a code is asked for while MongoDB says nothing, and mailed once it does', async (t) => {
  const email = createEmail();
  t.teardown(() => stack.mongoProxy!.release());
  stack.mongoProxy!.hold('web_users');
  t.is((await ask({ email, purpose: 'signup' })).status, 201);
  await waitFor('the worker to look the address up', () => stack.mongoProxy!.countSent(email) > 0);
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
    await ask({ email, purpose: 'signup' }, createAddress(), language);
    t.regex((await stack.mailbox!.waitForMail(email)).subject!, subject, language);
  }
});

test('ten codes an hour are mailed to a mailbox, from whatever address and for whatever purpose', async (t) => {
  const email = createEmail();
  for (let i = 0; i < 10; i++) {
    const body = {
      email: i % 2 === 0 ? email : email.toUpperCase(),
      purpose: i % 3 === 0 ? 'signup' : 'login',
    };
    t.is((await ask(body)).status, 201);
  }
  const address = createAddress();
  await checkLimited(t, await ask({ email }, address));
  t.is((await ask({ email: createEmail() }, address)).status, 201, 'other mailboxes are not affected');
});

test('a hundred codes an hour are mailed for a client address, and for a /64 of IPv6', async (t) => {
  for (const [network, one, other, outside] of [
    ['198.18.0.1', '198.18.0.1', '198.18.0.1', '198.18.0.2'],
    ['2001:db8:0:9::/64', '2001:db8:0:9::1', '2001:db8:0:9:ffff::2', '2001:db8:0:a::1'],
  ] as const) {
    await countAttempts(stack, 'mailed-codes-network', network, 99);
    t.is((await ask({ email: createEmail() }, one)).status, 201);
    const email = createEmail();
    await checkLimited(t, await ask({ email }, other));
    t.is((await ask({ email }, outside)).status, 201);
  }
});

test('a hundred wrong codes an hour are entered from a client address, and a right one beyond is kept for later', async (t) => {
  const address = '198.18.1.1';
  const client = new WebClient(stack.url, { headers: from(address) });
  await countAttempts(stack, 'wrong-codes-network', address, 99);
  const [code, other] = [await issueCode(stack, createEmail()), await issueCode(stack, createEmail())];
  t.is(await readErrorCode(await verifyCode(client, { ...other, code: 'x' }), 422), 'invalid_code');
  await checkLimited(t, await verifyCode(client, code));
  const elsewhere = new WebClient(stack.url, { headers: from('198.18.1.2') });
  t.is((await verifyCode(elsewhere, code)).status, 200);
});

test('a code that is entered while MongoDB is away is a 503, and is good once it is back', async (t) => {
  const url = await startOtherApi(t, stack, { MONGODB_URL: 'mongodb://127.0.0.1:1' });
  const code = await issueCode(stack, createEmail());
  const client = new WebClient(stack.url, { headers: from(createAddress()) });
  const away = new WebClient(url, { headers: from(createAddress()) });
  t.is(await readErrorCode(await verifyCode(away, code), 503), 'service_unavailable');
  t.is((await verifyCode(client, code)).status, 200);
});

test('challenges that were made up, have ended or are for something else lock no network out', async (t) => {
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
