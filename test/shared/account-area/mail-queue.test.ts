import test, { type ExecutionContext } from 'ava';
import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { decryptSecret } from '../../../shared/accounts/credentials.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { openBullQueue } from '../../../shared/work/queue/open-bull-queue.ts';
import { mailQueueName, MailQueue, type SealedMail } from '../../../shared/account-area/mail-queue.ts';
import {
  createConfirmationMail,
  createNotice,
  createSignInMail,
  testMasterKey,
} from '../../support/mails.ts';
import { readAllOfRedis } from '../../support/redis-snapshot.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);

interface Rig {
  readonly queue: MailQueue;
  readonly bull: Queue<SealedMail>;
}

/** Empties the queue, which all tests in this file share; they run one after another. */
async function createRig(t: ExecutionContext, maxWaiting?: number): Promise<Rig> {
  await redis().flushdb();
  const queue = new MailQueue(redis(), {
    masterKey: testMasterKey,
    ...(maxWaiting === undefined ? {} : { maxWaiting }),
  });
  const bull = openBullQueue<SealedMail>(mailQueueName, redis());
  t.teardown(async () => {
    await Promise.all([queue.close(), bull.close()]);
  });
  return { queue, bull };
}

test.serial('a waiting mail does not reveal its code, address or label without the master key', async (t) => {
  const { queue, bull } = await createRig(t);
  const sent = createConfirmationMail({ accountLabel: 'Secret label' });
  await queue.add(sent, { id: 'one' });
  await queue.add(createSignInMail());
  await queue.add(createNotice({ accountLabel: 'Secret label' }));
  const stored = await readAllOfRedis(redis());
  t.true(stored.includes('one'));
  for (const secret of ['493021', 'example.com', 'Secret label', '203.0.113.7'])
    t.false(stored.includes(secret));
  const { data } = (await bull.getJob('one'))!;
  t.deepEqual(JSON.parse(decryptSecret(data.sealed, testMasterKey)), sent);
  t.is(data.expiresAt, sent.expiresAt);
});

test.serial('if a waiting mail is added again with the same id, it is sent once', async (t) => {
  const { queue, bull } = await createRig(t);
  await Promise.all([1, 2, 3].map(() => queue.add(createNotice(), { id: 'event-1' })));
  t.is(await bull.getWaitingCount(), 1);
});

test.serial('an id that BullMQ would reject or misread is an error', async (t) => {
  const { queue } = await createRig(t);
  for (const id of ['a:b', '123', '', 'a b', 'a\r\nb', 'x'.repeat(101)])
    await t.throwsAsync(queue.add(createNotice(), { id }), { message: /is not a valid mail id/ });
});

test.serial(
  'if too many mails are waiting, adding one fails with service_unavailable until some are sent',
  async (t) => {
    const { queue, bull } = await createRig(t, 3);
    for (let i = 0; i < 3; i++) await queue.add(i === 0 ? createNotice() : createSignInMail());
    const refusal = await t.throwsAsync(queue.add(createSignInMail()), { instanceOf: AppError });
    t.is(refusal?.code, 'service_unavailable');
    const [first] = await bull.getWaiting();
    await first!.remove();
    await queue.add(createSignInMail());
    t.is(await bull.getWaitingCount(), 3);
    await t.throwsAsync(queue.add(createSignInMail()), { instanceOf: AppError });
    t.is(await bull.getWaitingCount(), 3);
  },
);

test.serial('mails are sent in the order they are added, so later codes do not delay a notice', async (t) => {
  const { queue, bull } = await createRig(t);
  await queue.add(createSignInMail(), { id: 'earlier-code' });
  await queue.add(createNotice(), { id: 'notice' });
  await queue.add(createSignInMail(), { id: 'later-code' });
  t.deepEqual(
    (await bull.getWaiting()).map(({ id }) => id),
    ['earlier-code', 'notice', 'later-code'],
  );
});

test.serial('adding a mail takes one round trip', async (t) => {
  const { queue } = await createRig(t);
  // The first mail also loads the scripts, which takes further round trips.
  await queue.add(createSignInMail());
  const { stream } = redis() as Redis;
  let replies = 0;
  const count = (): unknown => (replies += 1);
  stream.on('data', count);
  t.teardown(() => stream.off('data', count));
  for (let i = 0; i < 5; i++) await queue.add(createSignInMail());
  t.is(replies, 5);
});
