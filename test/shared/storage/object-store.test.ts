import {
  GetBucketLifecycleConfigurationCommand,
  HeadObjectCommand,
  PutBucketLifecycleConfigurationCommand,
  S3Client,
  type LifecycleRule,
} from '@aws-sdk/client-s3';
import test, { type ExecutionContext } from 'ava';
import type { Config } from '../../../shared/runtime/config.ts';
import { createFileKey } from '../../../shared/storage/file-name.ts';
import { useObjects } from '../../support/kept-answers.ts';

const { signal } = new AbortController();

function createClient(t: ExecutionContext, config: Config['s3']): S3Client {
  const client = new S3Client({ ...config, credentials: config, forcePathStyle: true });
  t.teardown(() => client.destroy());
  return client;
}

const rule = (id: string, prefix: string, days: number): LifecycleRule => ({
  ID: id,
  Status: 'Enabled',
  Filter: { Prefix: prefix },
  Expiration: { Days: days },
});

test('a bucket keeps the rules of others, and loses the former rule of ours with the last image that needs it', async (t) => {
  const { objects, config } = await useObjects(t);
  const client = createClient(t, config);
  const Bucket = config.bucket;
  const readRules = async (): Promise<unknown[]> => {
    const { Rules = [] } = await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
    return Rules.map(({ ID, Filter, Expiration }) => [ID, Filter?.Prefix ?? '', Expiration?.Days]);
  };
  const files = ['model-gateway-files', 'files/', 1];
  const answers = ['model-gateway-answers', 'answers/', 1];
  t.deepEqual(await readRules(), [files, answers]);

  const Rules = [rule('reports', 'reports/', 365), rule('expire-after-a-day', '', 1)];
  const LifecycleConfiguration = { Rules };
  await client.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }));
  const former = `${'a'.repeat(43)}.png`;
  await objects.put(former, Buffer.from('x'), 'image/png');
  await objects.prepareBucket();
  t.deepEqual(await readRules(), [
    ['reports', 'reports/', 365],
    ['expire-after-a-day', '', 1],
    files,
    answers,
  ]);
  await objects.delete(former);
  await objects.prepareBucket();
  t.deepEqual(await readRules(), [['reports', 'reports/', 365], files, answers]);
});

test('a link that leads to the bucket itself has a safe name to save by, and no cache keeps it past its day', async (t) => {
  const { objects, config } = await useObjects(t);
  const client = createClient(t, config);
  const key = createFileKey('image/png', 1_000);
  await objects.put(key, Buffer.from('x'), 'image/png');
  const told = await client.send(new HeadObjectCommand({ Bucket: config.bucket, Key: key }));
  t.is(told.ContentType, 'image/png');
  t.regex(told.ContentDisposition ?? '', /^inline; filename="image-[\w-]{8}\.png"$/);
  t.is(told.ExpiresString, 'Fri, 02 Jan 1970 00:00:01 GMT');
});

test('a listing goes on behind a key, and what is deleted together is gone, whether it was there or not', async (t) => {
  const { objects } = await useObjects(t);
  const keys = [1, 2, 3].map((atMs) => createFileKey('image/webp', atMs));
  for (const key of keys) await objects.put(key, Buffer.from('x'), 'image/webp');
  t.deepEqual(await objects.list('files/', 2, 'files/', signal), keys.slice(0, 2));
  t.deepEqual(await objects.list('files/', 2, keys[1]!, signal), keys.slice(2));
  t.deepEqual(await objects.deleteAll([keys[0]!, keys[2]!, 'files/none'], signal), []);
  t.deepEqual(await objects.list('files/', 10, 'files/', signal), [keys[1]]);
});
