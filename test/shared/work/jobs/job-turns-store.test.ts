import test from 'ava';
import { maxVirtualTime, type JobLine } from '../../../../shared/work/jobs/job-line.ts';
import { JobTurns } from '../../../../shared/work/jobs/job-turns-store.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

/** A job queue used only by one test: tests in this file share a Redis and run concurrently. */
let queueCount = 0;
const createQueue = (): JobLine => ({ queue: 'chat', model: `model ${(queueCount += 1)}` });

const takeArguments = ({ model }: JobLine, count: number): [number, ReadonlyMap<string, number>] => [
  count,
  new Map([[model, count]]),
];

async function takeAccounts(turns: JobTurns, modelQueue: JobLine, count: number): Promise<string[]> {
  const taken = await turns.take(modelQueue.queue, ...takeArguments(modelQueue, count));
  return taken.map(({ accountId }) => accountId);
}

test("one account's 100 000 waiting jobs delay another's single job by at most one turn", async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.sync(modelQueue, 'large', 1, 100_000);
  t.deepEqual(await takeAccounts(turns, modelQueue, 3), ['large', 'large', 'large']);
  for (let i = 0; i < 20; i++) {
    await turns.add(modelQueue, `small ${i}`, 1);
    const taken = await takeAccounts(turns, modelQueue, 2);
    t.true(taken.includes(`small ${i}`), taken.join(', '));
  }
});

test('if fifty accounts arrive together, each waits for at most one turn of every other account', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.sync(modelQueue, 'large', 100, 100_000);
  await takeAccounts(turns, modelQueue, 7);
  const small = Array.from({ length: 50 }, (_, i) => `small ${i}`);
  await Promise.all(small.map((accountId) => turns.add(modelQueue, accountId, 1)));
  const taken = await takeAccounts(turns, modelQueue, 51);
  t.deepEqual(
    taken.filter((accountId) => accountId !== 'large').sort(),
    [...small].sort(),
    'the weights of other accounts do not affect the first job of an account',
  );
});

test('an account of weight 3 gets three turns for each turn of an account of weight 1', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.sync(modelQueue, 'heavy', 3, 1_000);
  await turns.sync(modelQueue, 'light', 1, 1_000);
  const taken = await takeAccounts(turns, modelQueue, 400);
  t.is(taken.filter((accountId) => accountId === 'heavy').length, 300);
});

test('an account that always has a single job alternates with an account that has a backlog', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.sync(modelQueue, 'z backlog', 1, 100);
  const taken: string[] = [];
  for (let i = 0; i < 20; i++) {
    if (taken.at(-1) !== 'z backlog') await turns.add(modelQueue, 'a single', 1);
    taken.push(...(await takeAccounts(turns, modelQueue, 1)));
  }
  t.is(taken.filter((accountId) => accountId === 'z backlog').length, 10);
});

test('models take turns, and a model without a worker slot or configuration does not block the others', async (t) => {
  const turns = new JobTurns(redis());
  const [full, free, single] = ['full', 'free', 'single'];
  for (const model of [full, 'unknown', free, single])
    await turns.sync({ queue: 'image', model }, 'account', 1, 10);
  const slots = new Map([
    [full, 0],
    [free, 100],
    [single, 1],
  ]);
  const taken = await turns.take('image', 5, slots);
  t.deepEqual(
    taken.map(({ model }) => model),
    [free, single, free, free, free],
  );
  const next = await turns.take('image', 3, new Map([...slots.keys()].map((model) => [model, 100])));
  t.deepEqual(
    next.map(({ model }) => model),
    [full, single, free],
    'the model served least recently is next',
  );
});

test('a fair-queue turn that found no job removes the account, unless a job was added in between', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.sync(modelQueue, 'account', 1, 2);
  const [empty] = await turns.take(modelQueue.queue, ...takeArguments(modelQueue, 1));
  await turns.settle(modelQueue.queue, empty!, 0, false);
  t.deepEqual(await takeAccounts(turns, modelQueue, 1), []);

  await turns.add(modelQueue, 'account', 1);
  const [early] = await turns.take(modelQueue.queue, ...takeArguments(modelQueue, 1));
  await turns.add(modelQueue, 'account', 1);
  await turns.settle(modelQueue.queue, early!, 0);
  t.deepEqual(await takeAccounts(turns, modelQueue, 9), ['account']);
});

test('a fair-queue turn that found no job does not count against the account', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.sync(modelQueue, 'a', 1, 10);
  await turns.sync(modelQueue, 'b', 1, 10);
  const [turn] = await turns.take(modelQueue.queue, ...takeArguments(modelQueue, 1));
  t.is(turn?.accountId, 'a');
  await turns.add(modelQueue, 'a', 1);
  await turns.settle(modelQueue.queue, turn!, 0, false);
  t.deepEqual(await takeAccounts(turns, modelQueue, 2), ['a', 'b']);
});

test('no job gets two fair-queue turns', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.sync(modelQueue, 'account', 1, 3);
  const [first] = await turns.take(modelQueue.queue, ...takeArguments(modelQueue, 3));
  await turns.settle(modelQueue.queue, first!, 2);
  t.deepEqual(await takeAccounts(turns, modelQueue, 9), []);
});

test('the next settlement or repair restores lost index entries', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.add(modelQueue, 'account', 2);
  const [turn] = await turns.take(modelQueue.queue, ...takeArguments(modelQueue, 1));
  await redis().del(redisKeys.jobAccounts(modelQueue.queue, modelQueue.model));
  await turns.settle(modelQueue.queue, turn!, 3);
  t.deepEqual(await takeAccounts(turns, modelQueue, 9), ['account', 'account', 'account']);

  await turns.sync(modelQueue, 'account', 2, 1);
  await redis().del(redisKeys.jobAccounts(modelQueue.queue, modelQueue.model));
  t.deepEqual(
    await takeAccounts(turns, modelQueue, 9),
    [],
    'half of the index is lost, and the other half does not block any account',
  );
  await turns.sync(modelQueue, 'account', 2, 1);
  t.deepEqual(await takeAccounts(turns, modelQueue, 9), ['account']);
});

test('the queue does not wait for a job that was dropped', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.add(modelQueue, 'account', 1);
  await turns.drop(modelQueue, 'account');
  await turns.drop(modelQueue, 'account');
  t.deepEqual((await turns.outlook(modelQueue)).accounts, []);
  t.deepEqual(await takeAccounts(turns, modelQueue, 9), []);
});

test('an empty queue deletes its data about accounts within a minute', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await turns.add(modelQueue, 'account', 1);
  await takeAccounts(turns, modelQueue, 1);
  for (const key of [
    redisKeys.jobAccounts(modelQueue.queue, modelQueue.model),
    redisKeys.jobIdle(modelQueue.queue, modelQueue.model),
  ])
    t.true((await redis().pttl(key)) <= 60_000 && (await redis().pttl(key)) > 0, key);
  await turns.add(modelQueue, 'account', 1);
  t.is(
    await redis().pttl(redisKeys.jobAccounts(modelQueue.queue, modelQueue.model)),
    -1,
    'a waiting account does not expire',
  );
});

test('resetting the virtual times to zero does not change the order of turns', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  await redis().hset(
    redisKeys.jobIndex(modelQueue.queue),
    `time:${modelQueue.model}`,
    String(maxVirtualTime),
  );
  for (const [accountId, weight] of [
    ['a', 1],
    ['b', 2],
    ['c', 1],
  ] as const)
    await turns.sync(modelQueue, accountId, weight, 4);
  const taken: string[] = [];
  for (let i = 0; i < 12; i++) taken.push(...(await takeAccounts(turns, modelQueue, 1)));
  t.is(taken.join(''), 'abcbabcbacac');
  t.true((await turns.outlook(modelQueue)).virtualTime < maxVirtualTime / 2);
});

test('a job counts as running until it ends or its lease expires', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue: JobLine = { queue: 'embedding', model: 'model' };
  await turns.sync(modelQueue, 'account', 1, 3);
  await turns.markStarted(modelQueue, 'dies', 0);
  await turns.markStarted(modelQueue, 'ends', 60_000);
  await turns.markStarted(modelQueue, 'hangs', 60_000);
  t.deepEqual(await turns.counts('embedding'), { waiting: 3, running: 2 });
  await turns.markEnded(modelQueue, 'ends', 1_200);
  t.deepEqual(await turns.counts('embedding'), { waiting: 3, running: 1 });
  const { running, runningMs, serviceMs } = await turns.outlook(modelQueue);
  t.deepEqual({ running, jobs: runningMs.length, serviceMs }, { running: 1, jobs: 1, serviceMs: 1_200 });

  await turns.renewLeases([{ line: modelQueue, jobId: 'dies' }], 60_000);
  t.is((await turns.counts('embedding')).running, 2, 'it is alive, and was only late');
  await turns.renewLeases([{ line: modelQueue, jobId: 'dies' }], 0);
  t.is(
    (await turns.counts('embedding')).running,
    0,
    'a renewal may shorten a lease, because clocks may step back',
  );
});

test('a job that ends right after its lease was renewed does not count as running again', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueues = [createQueue(), { ...createQueue(), queue: 'image' } as const];
  const jobs = modelQueues.map((modelQueue, i) => ({ line: modelQueue, jobId: `job ${i}` }));
  for (const { line, jobId } of jobs) await turns.markStarted(line, jobId, 60_000);
  const renewed = turns.renewLeases(jobs, 60_000);
  await Promise.all(jobs.map(({ line, jobId }) => turns.markEnded(line, jobId, 100)));
  await renewed;
  for (const modelQueue of modelQueues) t.is((await turns.outlook(modelQueue)).running, 0);
});

test('only the latest twenty service times are used, excluding those of failed jobs', async (t) => {
  const turns = new JobTurns(redis());
  const modelQueue = createQueue();
  for (let i = 0; i < 30; i++) await turns.markEnded(modelQueue, `${i}`, i < 10 ? 1_000_000 : 100);
  await turns.markEnded(modelQueue, 'failed', null);
  t.is((await turns.outlook(modelQueue)).serviceMs, 100);
});
