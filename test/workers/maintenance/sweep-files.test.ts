import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { createApiFileKey, createFileKey } from '../../../shared/platform/storage/file-name.ts';
import type { ObjectStore } from '../../../shared/platform/storage/object-store.ts';
import { FileSweeper } from '../../../workers/maintenance/sweep-files.ts';
import { captureLog } from '../../support/captured-log.ts';
import { useObjects } from '../../support/stored-responses.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const day = 24 * 60 * 60 * 1_000;
/** The current time in these tests. */
const now = Date.UTC(2026, 10, 23, 12);
const { signal } = new AbortController();

async function setUp(t: ExecutionContext) {
  const server = await useObjects(t);
  const { objects } = server;
  const captured = captureLog();
  const createSweeper = (): FileSweeper =>
    new FileSweeper({ redis: redis(), workerId: randomUUID(), objects, log: captured.log, pageKeys: 10 });
  // Tests share the lease, and its previous holder is gone.
  await redis().del(redisKeys.fileSweepLease);
  const put = async (key: string): Promise<string> => {
    await objects.put(key, Buffer.from('x'), 'image/png');
    return key;
  };
  const make = async (atMs: number): Promise<string> => await put(createFileKey('image/png', atMs));
  return { ...server, ...captured, sweeper: createSweeper(), createSweeper, put, make };
}

const listAll = async (objects: ObjectStore): Promise<string[]> => await objects.list('', 1_000, '', signal);

test.serial('an image is deleted when it is 24 hours old, and not a second earlier', async (t) => {
  const { objects, sweeper, make } = await setUp(t);
  const first = await make(now);
  const second = await make(now + 1_000);
  await sweeper.sweep(signal, now + day - 1_000);
  t.deepEqual(await listAll(objects), [first, second]);
  await sweeper.sweep(signal, now + day);
  t.deepEqual(await listAll(objects), [second]);
  await sweeper.sweep(signal, now + day + 999);
  t.deepEqual(await listAll(objects), [second]);
  await sweeper.sweep(signal, now + day + 1_000);
  t.deepEqual(await listAll(objects), []);
});

test.serial('only images with a time in their file names are deleted', async (t) => {
  const { objects, sweeper, make, put } = await setUp(t);
  await make(now);
  const others = ['answers/019aa652/10', `${'a'.repeat(43)}.png`, 'files/0-readme.txt', 'files0/x', 'zebra'];
  for (const key of others) await put(key);
  await sweeper.sweep(signal, now + 100 * day);
  t.deepEqual(await listAll(objects), others.toSorted());
});

test.serial('a file of the API is deleted when it is due, and not a second earlier', async (t) => {
  const { objects, sweeper, make, put } = await setUp(t);
  const image = await make(now);
  const due = [5_000, 7_000, 40 * day].map((ms) => createApiFileKey(now + ms));
  for (const key of due) await put(key);
  await put('batch-files/readme.txt');
  const sweepAt = async (ms: number): Promise<string[]> => {
    await sweeper.sweep(signal, now + ms);
    return (await listAll(objects)).filter((key) => key !== 'batch-files/readme.txt');
  };
  t.deepEqual(await sweepAt(0), [...due, image]);
  t.deepEqual(await sweepAt(4_999), [...due, image]);
  t.deepEqual(await sweepAt(5_000), [...due.slice(1), image]);
  t.deepEqual(await sweepAt(7_000), [due[2]!, image]);
  // The file that is due first is now the image.
  t.deepEqual(await sweepAt(day - 1), [due[2]!, image]);
  t.deepEqual(await sweepAt(day), [due[2]!]);
  t.deepEqual(await sweepAt(40 * day), []);
});

test.serial(
  'all files of the API that are due are deleted in one sweep, also if images are due',
  async (t) => {
    const { objects, sweeper, make, put } = await setUp(t);
    await Promise.all(Array.from({ length: 12 }, (_, i) => make(now - day + i)));
    await Promise.all(Array.from({ length: 12 }, (_, i) => put(createApiFileKey(now + i))));
    const young = await put(createApiFileKey(now + day));
    await sweeper.sweep(signal, now + 12);
    t.deepEqual(await listAll(objects), [young]);
  },
);

test.serial('all expired files are deleted in one sweep, however many there are', async (t) => {
  const { objects, sweeper, make, lines } = await setUp(t);
  await Promise.all(Array.from({ length: 22 }, (_, i) => make(now + i)));
  const young = await make(now + day);
  await sweeper.sweep(signal, now + day + 22);
  t.deepEqual(await listAll(objects), [young]);
  const progress = lines.filter(({ msg }) => msg === 'deleting expired files').map(({ deleted }) => deleted);
  t.deepEqual(progress, [10, 20]);
});

test.serial(
  'only one worker at a time deletes files, and another takes over if that worker dies',
  async (t) => {
    const { objects, sweeper, createSweeper, make } = await setUp(t);
    const first = await make(now);
    const second = await make(now + 1_000);
    const other = createSweeper();
    await sweeper.sweep(signal, now);
    await other.sweep(signal, now + 10 * day);
    t.deepEqual(await listAll(objects), [first, second]);
    await redis().del(redisKeys.fileSweepLease);
    await other.sweep(signal, now + day);
    t.deepEqual(await listAll(objects), [second]);
  },
);

test.serial('the bucket is listed once per minute while no file is due for deletion', async (t) => {
  const { objects, sweeper, make } = await setUp(t);
  await sweeper.sweep(signal, now + day);
  // The time in its name comes from a clock that is behind.
  const late = await make(now);
  await sweeper.sweep(signal, now + day + 59_999);
  t.deepEqual(await listAll(objects), [late]);
  await sweeper.sweep(signal, now + day + 60_000);
  t.deepEqual(await listAll(objects), []);
});

test.serial('files that could not be deleted are deleted a minute later', async (t) => {
  const { objects, sweeper, make, stop, start } = await setUp(t);
  await make(now);
  await stop();
  await t.throwsAsync(sweeper.sweep(signal, now + day));
  await start();
  await sweeper.sweep(signal, now + day + 60_000);
  t.deepEqual(await listAll(objects), []);
});
