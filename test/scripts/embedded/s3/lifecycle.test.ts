import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CreateMultipartUploadCommand,
  DeleteBucketLifecycleCommand,
  GetBucketLifecycleConfigurationCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutBucketLifecycleConfigurationCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { LifecycleRule, S3Client } from '@aws-sdk/client-s3';
import test from 'ava';
import { bucketName as Bucket, dayMs, getErrorName, startTestServer, startUpload } from './support.ts';

const dayRule: LifecycleRule = {
  ID: 'a day',
  Status: 'Enabled',
  Filter: { Prefix: 'images/' },
  Expiration: { Days: 1 },
};

async function putRules(client: S3Client, ...Rules: LifecycleRule[]): Promise<void> {
  await client.send(
    new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration: { Rules } }),
  );
}

// The client signs with the server's clock, as if it had already corrected its own.
function setClock(client: S3Client, nowMs: number): void {
  client.config.systemClockOffset = nowMs - Date.now();
}

async function countFiles(dir: string): Promise<number> {
  const names = await readdir(join(dir, 'buckets', Bucket, 'objects'), { recursive: true });
  return names.filter((name) => name.length > 2).length;
}

test('an object with a one-day rule expires 24 hours after it was written, even before the sweep deletes it', async (t) => {
  let nowMs = Date.now();
  const { client, dir, sweep } = await startTestServer(t, { now: () => nowMs });
  await putRules(client, dayRule);
  const put = await client.send(new PutObjectCommand({ Bucket, Key: 'images/a', Body: 'x' }));
  await client.send(new PutObjectCommand({ Bucket, Key: 'other/b', Body: 'x' }));
  const expiresAt = new Date(nowMs + dayMs).toUTCString();
  t.is(put.Expiration, `expiry-date="${expiresAt}", rule-id="a%20day"`);

  nowMs += dayMs - 1000;
  setClock(client, nowMs);
  const download = await client.send(new GetObjectCommand({ Bucket, Key: 'images/a' }));
  t.is(download.Expiration, put.Expiration);
  t.is(await download.Body?.transformToString(), 'x');
  t.is(await sweep(), 0);

  nowMs += 1000;
  setClock(client, nowMs);
  t.is(await getErrorName(t, client.send(new GetObjectCommand({ Bucket, Key: 'images/a' }))), 'NoSuchKey');
  t.is(await getErrorName(t, client.send(new HeadObjectCommand({ Bucket, Key: 'images/a' }))), 'NotFound');
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
  t.deepEqual(
    Contents.map(({ Key }) => Key),
    ['other/b'],
  );
  t.is(await countFiles(dir), 2);
  t.is(await sweep(), 1);
  t.is(await countFiles(dir), 1);
  t.is(await sweep(), 0);
  await t.notThrowsAsync(client.send(new GetObjectCommand({ Bucket, Key: 'other/b' })));
});

test('if an object is rewritten, its lifetime starts again', async (t) => {
  let nowMs = Date.now();
  const { client, sweep } = await startTestServer(t, { now: () => nowMs });
  await putRules(client, dayRule);
  await client.send(new PutObjectCommand({ Bucket, Key: 'images/a', Body: 'x' }));
  nowMs += dayMs * 0.9;
  setClock(client, nowMs);
  await client.send(new PutObjectCommand({ Bucket, Key: 'images/a', Body: 'y' }));
  nowMs += dayMs * 0.9;
  setClock(client, nowMs);
  t.is(await sweep(), 0);
  const download = await client.send(new GetObjectCommand({ Bucket, Key: 'images/a' }));
  t.is(await download.Body?.transformToString(), 'y');
});

test('the sweep runs periodically without a request', async (t) => {
  let nowMs = Date.now();
  const { client, dir } = await startTestServer(t, { now: () => nowMs, sweepIntervalMs: 10 });
  await putRules(client, dayRule);
  await client.send(new PutObjectCommand({ Bucket, Key: 'images/a', Body: 'x' }));
  t.is(await countFiles(dir), 1);
  nowMs += dayMs;
  while ((await countFiles(dir)) > 0) {
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
  t.pass();
});

test('the earliest of several rules applies, and a disabled one does not', async (t) => {
  const { client } = await startTestServer(t);
  await putRules(
    client,
    { ...dayRule, Status: 'Disabled' },
    { ID: 'all', Status: 'Enabled', Filter: {}, Expiration: { Days: 7 } },
    { ID: 'cats', Status: 'Enabled', Filter: { Prefix: 'images/cats/' }, Expiration: { Days: 3 } },
  );
  const expirationOf = async (Key: string) => {
    const put = await client.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }));
    return put.Expiration ?? '';
  };
  t.regex(await expirationOf('images/a'), /rule-id="all"/);
  t.regex(await expirationOf('images/cats/a'), /rule-id="cats"/);
});

test('rules can be read back, survive a restart and can be deleted', async (t) => {
  const first = await startTestServer(t);
  const get = new GetBucketLifecycleConfigurationCommand({ Bucket });
  t.is(await getErrorName(t, first.client.send(get)), 'NoSuchLifecycleConfiguration');
  await putRules(first.client, dayRule);
  await first.client.send(new PutObjectCommand({ Bucket, Key: 'images/a', Body: 'x' }));
  await first.close();

  const nowMs = Date.now() + dayMs + 1000;
  const { client, sweep } = await startTestServer(t, { dir: first.dir, now: () => nowMs });
  setClock(client, nowMs);
  t.deepEqual((await client.send(get)).Rules, [dayRule]);
  t.is(await getErrorName(t, client.send(new GetObjectCommand({ Bucket, Key: 'images/a' }))), 'NoSuchKey');
  t.is(await sweep(), 1);
  await client.send(new DeleteBucketLifecycleCommand({ Bucket }));
  t.is(await getErrorName(t, client.send(get)), 'NoSuchLifecycleConfiguration');
  const put = await client.send(new PutObjectCommand({ Bucket, Key: 'images/a', Body: 'x' }));
  t.is(put.Expiration, undefined);
});

test('a rule aborts unfinished uploads a day after they were initiated, even before the sweep deletes their parts', async (t) => {
  let nowMs = Date.now();
  const { client, dir, sweep } = await startTestServer(t, { now: () => nowMs });
  const rule: LifecycleRule = {
    ID: 'uploads',
    Status: 'Enabled',
    Filter: { Prefix: 'images/' },
    Expiration: { Days: 31 },
    AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
  };
  await putRules(client, rule);
  const { Rules } = await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
  t.deepEqual(Rules, [rule]);
  const created = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'images/a' }));
  t.is(created.AbortDate?.getTime(), Math.floor((nowMs + dayMs) / 1000) * 1000);
  t.is(created.AbortRuleId, 'uploads');
  const upload = await startUpload(client, 'images/b');
  const other = await startUpload(client, 'other/c');
  for (const { put } of [upload, other]) await put(1, Buffer.from('x'));
  const listUploads = async () => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }));
    return Uploads.map(({ Key }) => Key);
  };
  const countFolders = async () => (await readdir(join(dir, 'buckets', Bucket, 'uploads'))).length;

  nowMs += dayMs - 1000;
  setClock(client, nowMs);
  t.is(await sweep(), 0);
  t.deepEqual(await listUploads(), ['images/a', 'images/b', 'other/c']);

  nowMs += 1000;
  setClock(client, nowMs);
  t.deepEqual(await listUploads(), ['other/c']);
  t.is(await getErrorName(t, upload.put(2, Buffer.from('x'))), 'NoSuchUpload');
  t.is(await getErrorName(t, upload.complete()), 'NoSuchUpload');
  t.is(await countFolders(), 3);
  t.is(await sweep(), 2);
  t.is(await countFolders(), 1);
  // As in S3, the object is as old as its upload.
  await other.complete();
  const head = await client.send(new HeadObjectCommand({ Bucket, Key: 'other/c' }));
  t.is(head.LastModified?.getTime(), Math.floor((nowMs - dayMs) / 1000) * 1000);
});

test('a lifecycle rule that the server cannot enforce is rejected', async (t) => {
  const { client } = await startTestServer(t);
  const rejectedRules: [LifecycleRule, string][] = [
    [{ ...dayRule, Expiration: { Date: new Date('2030-01-01') } }, 'NotImplemented'],
    [{ ...dayRule, Filter: { Tag: { Key: 'a', Value: 'b' } } }, 'NotImplemented'],
    [{ ...dayRule, Transitions: [{ Days: 1, StorageClass: 'GLACIER' }] }, 'NotImplemented'],
    [{ ...dayRule, Expiration: { Days: 0 } }, 'InvalidArgument'],
    [{ ...dayRule, Expiration: { Days: 1.5 } }, 'MalformedXML'],
    [{ ...dayRule, AbortIncompleteMultipartUpload: { DaysAfterInitiation: 0 } }, 'InvalidArgument'],
    [{ ...dayRule, AbortIncompleteMultipartUpload: {} }, 'MalformedXML'],
    [{ ID: 'x', Status: 'Enabled', Filter: {} }, 'MalformedXML'],
  ];
  for (const [rule, code] of rejectedRules) {
    t.is(await getErrorName(t, putRules(client, rule)), code, JSON.stringify(rule));
  }
  t.is(await getErrorName(t, putRules(client, dayRule, dayRule)), 'InvalidArgument');
  await putRules(client, { Status: 'Enabled', Prefix: 'old-style/', Expiration: { Days: 2 } });
  const { Rules = [] } = await client.send(new GetBucketLifecycleConfigurationCommand({ Bucket }));
  t.is(Rules[0]?.Filter?.Prefix, 'old-style/');
});
