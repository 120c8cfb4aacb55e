import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { MailQueue } from '../../../../shared/account-area/mail-queue.ts';
import type { Mail } from '../../../../shared/account-area/mail.ts';
import { openBullQueue } from '../../../../shared/work/queue/open-bull-queue.ts';
import { mailQueueName, type SealedMail } from '../../../../shared/account-area/mail-queue.ts';
import {
  computeMailRetryMs,
  type MailIntakeOptions,
} from '../../../../workers/deliveries/mail/take-mails.ts';
import { readCode, useMailbox, type Mailbox } from '../../../support/mailbox.ts';
import {
  createNotice,
  createSignInMail,
  startTestMailIntake,
  testMasterKey,
} from '../../../support/mails.ts';
import { readAllOfRedis } from '../../../support/redis-snapshot.ts';
import { startTestRedis, type TestRedis } from '../../../support/redis.ts';
import { useStack } from '../../../support/stack.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { startProgram } from '../../../support/worker-process.ts';

let server: TestRedis;
let databases = 0;

test.before(async () => {
  server = await startTestRedis();
});
test.after.always(async () => {
  await server.stop();
});

interface Rig {
  readonly redisUrl: string;
  readonly redis: RedisClient;
  readonly queue: MailQueue;
  readonly mailbox: Mailbox;
  /** Starts a worker that stops with the test. */
  readonly start: (settings?: Partial<MailIntakeOptions>) => Promise<void>;
  readonly add: (mail: Mail, id?: string) => Promise<void>;
  /** Resolves when no mail is waiting or being sent. */
  readonly whenEmpty: () => Promise<void>;
  readonly countFailed: () => Promise<number>;
}

/** Uses one Redis database per test, because the queue has the same name in every test. */
async function createRig(t: ExecutionContext): Promise<Rig> {
  const redisUrl = `${server.url}/${databases++}`;
  const redis = createRedis(redisUrl, 'commands', createLogger('test', 'silent'));
  await waitUntilReady(redis);
  t.teardown(() => redis.disconnect());
  const queue = new MailQueue(redis, { masterKey: testMasterKey });
  t.teardown(() => queue.close());
  const bull = openBullQueue<SealedMail>(mailQueueName, redis);
  t.teardown(() => bull.close());
  const mailbox = await useMailbox(t);
  return {
    redisUrl,
    redis,
    queue,
    mailbox,
    async start(settings) {
      const intake = await startTestMailIntake(redisUrl, { smtpUrl: mailbox.url, ...settings });
      t.teardown(() => intake.stop());
    },
    add: (mail, id) => queue.add(mail, id === undefined ? {} : { id }),
    async whenEmpty() {
      await waitFor('the queue to be empty', async () => {
        const counts = await bull.getJobCounts('wait', 'active', 'delayed', 'prioritized');
        return Object.values(counts).every((count) => count === 0);
      });
    },
    countFailed: () => bull.getFailedCount(),
  };
}

const idOf = (raw: string): string | undefined => /^Message-ID: (.*)\r$/im.exec(raw)?.[1];

test('a mail arrives as text and HTML, in its language, with the right sender and recipient, marked as auto-generated', async (t) => {
  const { mailbox, start, add } = await createRig(t);
  await start();
  await add(createSignInMail({ language: 'ru' }), 'first');
  await add(createSignInMail({ email: 'bob@example.com', code: '120934' }));
  const russian = await mailbox.waitForMail('ann@example.com');
  t.is(russian.subject, 'Код для входа в Test Gateway');
  t.deepEqual(russian.from, { name: 'Test Gateway', address: 'no-reply@gateway.example' });
  t.deepEqual(russian.to, [{ name: '', address: 'ann@example.com' }]);
  t.regex(russian.raw, /^Content-Type: multipart\/alternative;/m);
  t.is(russian.raw.match(/^Content-Type: text\/(?:plain|html); charset=utf-8/gm)?.length, 2);
  t.is(readCode(russian), '493021');
  t.true(russian.html?.includes('493021'));
  t.is(russian.messageId, '<first@gateway.example>');
  t.regex(russian.raw, /^Auto-Submitted: auto-generated\r$/m);
  const english = await mailbox.waitForMail('bob@example.com');
  t.is(english.subject, 'Your sign-in code for Test Gateway');
  t.is(readCode(english), '120934');
});

test('when a worker sends a sign-in code, and only then, it checks whether the address belongs to a user', async (t) => {
  const { mailbox, start, add } = await createRig(t);
  const checkedEmails: string[] = [];
  let failures = 1;
  const isKnown = (email: string): Promise<boolean> => {
    checkedEmails.push(email);
    // As if MongoDB were briefly unavailable.
    if (failures-- > 0) return Promise.reject(new Error('unavailable'));
    return Promise.resolve(email.startsWith('ann'));
  };
  await start({ isKnown });
  await add(createSignInMail());
  await add(createSignInMail({ email: 'eve@example.com' }));
  await add(createNotice());
  const known = await mailbox.waitForMail('ann@example.com', ({ subject }) => subject!.includes('code'));
  t.is(readCode(known), '493021');
  const stranger = await mailbox.waitForMail('eve@example.com');
  t.true(stranger.text!.includes('nobody has signed up'));
  t.throws(() => readCode(stranger));
  await mailbox.waitForMail('ann@example.com', ({ subject }) => subject === 'An API key was shown');
  t.is(checkedEmails.length, 3, 'once per code, and once more after the failure');
  t.deepEqual([...new Set(checkedEmails)].toSorted(), ['ann@example.com', 'eve@example.com']);
});

test('if the mail server does not respond, adding mails is not delayed, and a mail that takes too long is retried', async (t) => {
  const { mailbox, start, add, whenEmpty } = await createRig(t);
  const release = mailbox.hold();
  await start({ concurrency: 1, timeouts: { connectMs: 1_000, silenceMs: 60_000, totalMs: 250 } });
  await add(createNotice({ at: Date.now() }), 'held');
  await mailbox.waitForAttempts(1);
  // All mails are added to the queue while the mail server does not respond on the only connection.
  for (let i = 0; i < 50; i++) await add(createSignInMail({ email: `u${i}@example.com` }));
  await mailbox.waitForAttempts(2);
  release();
  for (let i = 0; i < 50; i++) await mailbox.waitForMail(`u${i}@example.com`);
  await whenEmpty();
  t.true(mailbox.received.some(({ raw }) => idOf(raw) === '<held@gateway.example>'));
});

test('mails added while the mail server is down arrive once each when it is back', async (t) => {
  const { mailbox, start, add, whenEmpty } = await createRig(t);
  await start();
  await add(createSignInMail());
  await mailbox.waitForMail('ann@example.com');
  // This also closes the pooled connection.
  await mailbox.stop();
  const emails = ['a@example.com', 'b@example.com', 'c@example.com'];
  for (const email of emails) await add(createSignInMail({ email }));
  await add(createNotice({ email: 'd@example.com' }));
  await mailbox.restart();
  for (const email of [...emails, 'd@example.com']) await mailbox.waitForMail(email);
  await whenEmpty();
  t.is(mailbox.received.length, 5);
});

test('an expired code is not sent, and its data is deleted', async (t) => {
  const { redis, mailbox, start, add, whenEmpty } = await createRig(t);
  await add(createSignInMail({ expiresAt: Date.now() - 1 }), 'late');
  await add(createNotice({ at: Date.now() - 3 * 24 * 60 * 60_000 }), 'old');
  await add(createSignInMail({ email: 'bob@example.com' }), 'fresh');
  const keys = ['{bull}:mail:late', '{bull}:mail:fresh'];
  t.is(await redis.exists(...keys), 2);
  await start();
  await mailbox.waitForMail('bob@example.com');
  await whenEmpty();
  t.is(mailbox.received.length, 1);
  t.is(await redis.exists(...keys), 0);
});

test('a mail is not retried if the server permanently rejects its recipient or content, and is retried after any other rejection', async (t) => {
  const { redis, mailbox, start, add, whenEmpty, countFailed } = await createRig(t);
  await start();
  mailbox.refusal = { step: 'RCPT TO', status: 550 };
  await add(createSignInMail());
  await whenEmpty();
  t.is(mailbox.attempts, 1);
  mailbox.refusal = { step: 'DATA', status: 554 };
  await add(createNotice());
  await whenEmpty();
  t.is(mailbox.attempts, 2);
  t.is(await countFailed(), 1, 'a notice is kept for the operator, a code is not');
  mailbox.refusal = { step: 'RCPT TO', status: 451 };
  await add(createSignInMail({ email: 'bob@example.com' }));
  await mailbox.waitForAttempts(5);
  t.notRegex(await readAllOfRedis(redis), /bob@|493021/, 'the reason why a mail failed is stored in Redis');
  // A rejected sender address is always retried, because an operator can fix it.
  mailbox.refusal = { step: 'MAIL FROM', status: 550 };
  await add(createSignInMail({ email: 'cid@example.com' }));
  mailbox.refusal = null;
  await mailbox.waitForMail('bob@example.com');
  await mailbox.waitForMail('cid@example.com');
  await whenEmpty();
  t.is(mailbox.received.length, 2);
});

test('if a worker dies while it sends a mail, another worker sends the mail with the same Message-ID', async (t) => {
  const { redisUrl, mailbox, start, add, whenEmpty } = await createRig(t);
  const program = fileURLToPath(new URL('../../../support/mail-worker.js', import.meta.url));
  const env = { REDIS_URL: redisUrl, SMTP_URL: mailbox.url, LOCK_MS: '500' };
  const worker = await startProgram(t, 'worker', [program], env);
  const release = mailbox.hold();
  await add(createSignInMail());
  const first = await mailbox.waitForMail('ann@example.com');
  await worker.kill();
  release();
  await start({ lockMs: 500 });
  const second = await mailbox.waitForMail('ann@example.com');
  await whenEmpty();
  t.truthy(idOf(first.raw));
  t.is(idOf(second.raw), idOf(first.raw));
});

test('non-ASCII domains are sent in punycode, and mails to invalid addresses are dropped', async (t) => {
  const { mailbox, start, add, whenEmpty } = await createRig(t);
  await start();
  await add(createSignInMail({ email: 'анна@почта.рф' }));
  await add(createSignInMail({ email: 'ann@bücher.example' }));
  for (const email of ['ann@example.com\r\nRCPT TO:<eve@example.com>', 'a@b.example, eve@example.com', 'ann'])
    await add(createSignInMail({ email }));
  // The test server decodes punycode: waitForMail finds a recipient by the decoded domain.
  const german = await mailbox.waitForMail('ann@bücher.example');
  t.deepEqual(german.to, [{ name: '', address: 'ann@xn--bcher-kva.example' }]);
  await mailbox.waitForMail('анна@почта.рф');
  await whenEmpty();
  t.is(mailbox.received.length, 2);
});

test('a worker sends queued mails with the settings in its environment variables', async (t) => {
  const stack = await useStack(t, { mail: true, env: { MAIL_FROM: 'Шлюз <no-reply@gateway.example>' } });
  const queue = new MailQueue(stack.redis, stack.config);
  t.teardown(() => queue.close());
  await queue.add(createSignInMail({ purpose: 'signup', language: 'ru' }));
  const mail = await stack.mailbox!.waitForMail('ann@example.com');
  t.is(mail.subject, 'Код регистрации в Шлюз');
  t.is(readCode(mail), '493021');
});

test('retry delays double, up to a minute for a code and a quarter of an hour for a notice', (t) => {
  const pauses = (kind: 'sign-in-code' | 'notice'): number[] =>
    [1, 2, 3, 4, 5, 6, 9, 5_000].map((attempts) => computeMailRetryMs(attempts, kind, () => 0) / 1_000);
  t.deepEqual(pauses('sign-in-code'), [5, 10, 20, 40, 60, 60, 60, 60]);
  t.deepEqual(pauses('notice'), [5, 10, 20, 40, 80, 160, 900, 900]);
});

test('mails that failed together are retried at different times', (t) => {
  t.is(
    computeMailRetryMs(1, 'notice', () => 1),
    6_000,
  );
});
