import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import mongoose from 'mongoose';
import { createRedis, waitUntilReady } from '../../../shared/platform/redis/redis-client.ts';
import { readEndpoints } from '../../../shared/platform/config/config.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { MailQueue } from '../../../shared/account-area/mail-queue.ts';
import { loadSecrets } from '../../../scripts/start/secrets-file.ts';
import { closeSockets, openSockets } from '../../support/hostile-sockets.ts';
import { createSignInMail } from '../../support/mails.ts';
import { waitFor } from '../../support/wait-for.ts';
import { isGone, startAll } from './start-all.ts';

/**
 * Opens unauthenticated connections to each store that send nothing or an unfinished request, and an authenticated
 * MongoDB client that is idle.
 */
async function openConnections(
  t: ExecutionContext,
  { MONGODB_URL, S3_ENDPOINT, REDIS_URL, SMTP_URL }: NodeJS.ProcessEnv,
) {
  for (const url of [MONGODB_URL!, S3_ENDPOINT!, REDIS_URL!, SMTP_URL!]) {
    const sockets = await openSockets(url, 4);
    t.teardown(() => closeSockets(sockets));
    sockets[0]!.write('GET / HTTP/1.1\r\nHost: x\r\n');
    sockets[1]!.write(Buffer.from([200, 0, 0, 0]));
    sockets[2]!.write('*1000000\r\n$9');
  }
  const client = await mongoose.mongo.MongoClient.connect(MONGODB_URL!);
  t.teardown(() => client.close(true));
  await client.db('model_gateway').command({ ping: 1 });
}

/** Checks that the worker sends a queued mail to the outbox, and that the console shows its code. */
async function checkMail(
  t: ExecutionContext,
  { REDIS_URL, MASTER_KEY }: NodeJS.ProcessEnv,
  readOutput: () => string,
): Promise<void> {
  const redis = createRedis(REDIS_URL!, 'commands', createLogger('test', 'silent'));
  t.teardown(() => redis.disconnect());
  await waitUntilReady(redis);
  const queue = new MailQueue(redis, { masterKey: MASTER_KEY! });
  t.teardown(() => queue.close());
  // Uses a sign-up code, because an address without a user does not get a sign-in code.
  await queue.add(createSignInMail({ purpose: 'signup' }));
  await waitFor('the console to show the mail', () => readOutput().includes('DEV mail to ann@example.com'));
  t.regex(readOutput(), /✓ smtp +embedded server, port \d+: mails stay on this machine/);
  t.regex(readOutput(), /smtp +DEV mail to ann@example\.com: .* · code 493021 · .*outbox\/.*\.eml\n/);
  t.notRegex(readOutput(), /"endpoint"/);
}

test.serial(
  'SIGTERM stops everything with exit code 0, even with clients connected to the stores, and no log contains a password',
  async (t) => {
    const { dataDir, child, ended, parts, readOutput } = await startAll(t);
    const endpoints = readEndpoints(dataDir);
    t.deepEqual(parts.map(({ name }) => name).toSorted(), [
      'api',
      'mongodb',
      'redis',
      's3',
      'smtp',
      'worker',
    ]);
    await openConnections(t, endpoints as NodeJS.ProcessEnv);
    await checkMail(t, endpoints as NodeJS.ProcessEnv, readOutput);
    child.kill('SIGTERM');
    t.deepEqual(await ended, [0, null]);
    t.true(parts.every(isGone));
    t.regex(readOutput(), /Stopping \(SIGTERM\).*\nStopped in /s);
    const logs = readdirSync(join(dataDir, 'logs')).map((name) =>
      readFileSync(join(dataDir, 'logs', name), 'utf8'),
    );
    const { masterKey, mongodbPassword, s3SecretAccessKey, smtpPassword } = loadSecrets(dataDir);
    const redisPassword = new URL((endpoints as NodeJS.ProcessEnv)['REDIS_URL']!).password;
    t.not(redisPassword, '');
    for (const secret of [masterKey, redisPassword, mongodbPassword, s3SecretAccessKey, smtpPassword])
      t.false([readOutput(), ...logs].some((text) => text.includes(secret)));
  },
);

test.serial('a second SIGINT stops everything immediately and exits with 130', async (t) => {
  const { dataDir, child, ended, parts } = await startAll(t);
  await openConnections(t, readEndpoints(dataDir) as NodeJS.ProcessEnv);
  // Suspends a process, so that the first SIGINT cannot complete.
  const worker = parts.find(({ name }) => name === 'worker')!;
  process.kill(worker.pid, 'SIGSTOP');
  child.kill('SIGINT');
  // A second SIGINT within a second is ignored, because npm also forwards Ctrl-C. So this sends more of them.
  const again = setInterval(() => child.kill('SIGINT'), 300);
  t.teardown(() => clearInterval(again));
  t.deepEqual(await ended, [130, null]);
  await waitFor('all processes to exit', () => parts.every(isGone));
});
