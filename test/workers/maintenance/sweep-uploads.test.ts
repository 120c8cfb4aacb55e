import { randomUUID } from 'node:crypto';
import { ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import test, { type ExecutionContext } from 'ava';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { createApiFileKey } from '../../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../../shared/platform/storage/object-store.ts';
import { partBytes } from '../../../shared/platform/storage/object-upload.ts';
import { UploadSweeper } from '../../../workers/maintenance/sweep-uploads.ts';
import { captureLog } from '../../support/captured-log.ts';
import { useObjects } from '../../support/stored-responses.ts';
import { useRedis } from '../../support/use-redis.ts';

const redis = useRedis(test);
const day = 24 * 60 * 60 * 1_000;
const { signal } = new AbortController();

async function setUp(t: ExecutionContext) {
  const server = await useObjects(t);
  const { objects, config } = server;
  const { log, lines } = captureLog();
  const createSweeper = (): UploadSweeper =>
    new UploadSweeper({ redis: redis(), workerId: randomUUID(), objects, log });
  // Tests share the lease, and its previous holder is gone.
  await redis().del(redisKeys.fileSweepLease);
  const client = new S3Client({ ...config, credentials: config, forcePathStyle: true });
  t.teardown(() => client.destroy());
  const countUploads = async (): Promise<number> => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: config.bucket }));
    return Uploads.length;
  };
  /** An upload whose process dies before its end. */
  const leave = async (key: string): Promise<void> => {
    const upload = objects.openUpload(key, 'application/jsonl');
    await upload.write(Buffer.alloc(2 * partBytes + 1));
  };
  return { ...server, lines, createSweeper, countUploads, leave };
}

test.serial('unfinished uploads of API files are aborted when they are a day old', async (t) => {
  const { createSweeper, countUploads, leave, lines } = await setUp(t);
  const startedAtMs = Date.now();
  await leave(createApiFileKey(startedAtMs));
  await leave(createApiFileKey(startedAtMs + 30 * day));
  await leave('other/upload');
  const sweeper = createSweeper();
  await sweeper.sweep(signal, startedAtMs + day - 60_000);
  t.is(await countUploads(), 3);
  await sweeper.sweep(signal, Date.now() + day + 1);
  t.is(await countUploads(), 1);
  t.deepEqual(
    lines.map(({ msg, aborted }) => [msg, aborted]),
    [['unfinished uploads aborted', 2]],
  );
  await sweeper.sweep(signal, Date.now() + day + 1);
  t.is(lines.length, 1);
});

test.serial(
  'only one worker aborts uploads, and one that cannot reach the store tries again later',
  async (t) => {
    const { createSweeper, countUploads, leave, stop, start } = await setUp(t);
    await leave(createApiFileKey(Date.now()));
    const [first, other] = [createSweeper(), createSweeper()];
    await stop();
    await t.throwsAsync(first.sweep(signal, Date.now() + 2 * day));
    await start();
    await other.sweep(signal, Date.now() + 2 * day);
    t.is(await countUploads(), 1);
    await first.sweep(signal, Date.now() + 2 * day);
    t.is(await countUploads(), 0);
  },
);

test.serial('before the bucket exists, there is nothing to abort', async (t) => {
  const { objects, config } = await setUp(t);
  const missing = new ObjectStore({ ...config, bucket: 'missing' });
  t.teardown(() => missing.close());
  t.is(await missing.abortUploads('batch-files/', Date.now(), signal), 0);
  t.is(await objects.abortUploads('batch-files/', Date.now(), signal), 0);
});
