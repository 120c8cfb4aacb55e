import { Readable } from 'node:stream';
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  paginateListObjectsV2,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { ChecksumAlgorithm } from '@aws-sdk/client-s3';
import test from 'ava';
import {
  bucketName as Bucket,
  createClient,
  getErrorName,
  makeBytes,
  makeTempDir,
  md5Etag,
  startTestServer,
} from './support.ts';

test('reading an object returns its bytes, type, metadata, entity tag and time', async (t) => {
  const { client } = await startTestServer(t);
  const body = makeBytes(70_000);
  const put = await client.send(
    new PutObjectCommand({
      Bucket,
      Key: 'a/b.png',
      Body: body,
      ContentType: 'image/png',
      CacheControl: 'private',
      Metadata: { owner: 'me', __proto__x: 'y' },
    }),
  );
  t.is(put.ETag, md5Etag(body));
  t.truthy(put.ChecksumCRC32);
  const download = await client.send(new GetObjectCommand({ Bucket, Key: 'a/b.png' }));
  t.true(body.equals((await download.Body?.transformToByteArray()) ?? Buffer.alloc(0)));
  t.is(download.ContentType, 'image/png');
  t.is(download.CacheControl, 'private');
  t.is(download.ContentEncoding, undefined);
  t.deepEqual(download.Metadata, { owner: 'me', __proto__x: 'y' });
  t.is(download.ETag, put.ETag);
  t.is(download.ChecksumCRC32, put.ChecksumCRC32);
  t.true(Math.abs(Date.now() - (download.LastModified?.getTime() ?? 0)) < 10_000);
  const head = await client.send(new HeadObjectCommand({ Bucket, Key: 'a/b.png' }));
  t.is(head.ContentLength, body.length);
  t.is(head.ETag, put.ETag);
});

test('an empty object and an overwritten object can be read completely', async (t) => {
  const { client } = await startTestServer(t);
  const read = async () => {
    const download = await client.send(new GetObjectCommand({ Bucket, Key: 'k' }));
    return (await download.Body?.transformToString()) ?? '';
  };
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'first' }));
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: '' }));
  t.is(await read(), '');
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'second' }));
  t.is(await read(), 'second');
});

for (const algorithm of ['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] satisfies ChecksumAlgorithm[]) {
  test(`uploads with ${algorithm} work from a buffer and from a stream`, async (t) => {
    const { client } = await startTestServer(t);
    const body = makeBytes(200_000);
    const common = { Bucket, ChecksumAlgorithm: algorithm, ContentLength: body.length };
    await client.send(new PutObjectCommand({ ...common, Key: 'buffer', Body: body }));
    await client.send(
      new PutObjectCommand({ ...common, Key: 'stream', Body: Readable.from(splitBytes(body)) }),
    );
    for (const Key of ['buffer', 'stream']) {
      const download = await client.send(new GetObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }));
      t.truthy(download[`Checksum${algorithm}`]);
      t.true(body.equals((await download.Body?.transformToByteArray()) ?? Buffer.alloc(0)));
    }
  });
}

test('a client that does not compute checksums works', async (t) => {
  const { endpoint } = await startTestServer(t);
  const client = createClient(t, endpoint, {
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'plain' }));
  const download = await client.send(new GetObjectCommand({ Bucket, Key: 'k' }));
  t.is(await download.Body?.transformToString(), 'plain');
});

test('if its clock is wrong, a client corrects it using the date in the rejection', async (t) => {
  const now = () => Date.now() + 3 * 3_600_000;
  const { endpoint } = await startTestServer(t, { dir: await makeTempDir(t), now });
  const client = createClient(t, endpoint, { maxAttempts: 3 });
  await t.notThrowsAsync(client.send(new CreateBucketCommand({ Bucket })));
});

test('ranges are exact: from the start, open-ended, suffix, past the end, and invalid', async (t) => {
  const { client } = await startTestServer(t);
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: '0123456789' }));
  const read = async (Range: string) => {
    const download = await client.send(new GetObjectCommand({ Bucket, Key: 'k', Range }));
    return [
      download.$metadata.httpStatusCode,
      await download.Body?.transformToString(),
      download.ContentRange,
    ];
  };
  t.deepEqual(await read('bytes=0-3'), [206, '0123', 'bytes 0-3/10']);
  t.deepEqual(await read('bytes=7-'), [206, '789', 'bytes 7-9/10']);
  t.deepEqual(await read('bytes=-4'), [206, '6789', 'bytes 6-9/10']);
  t.deepEqual(await read('bytes=-40'), [206, '0123456789', 'bytes 0-9/10']);
  t.deepEqual(await read('bytes=8-99'), [206, '89', 'bytes 8-9/10']);
  t.deepEqual(await read('bytes=5-2'), [200, '0123456789', undefined]);
  t.deepEqual(await read('lines=1-2'), [200, '0123456789', undefined]);
  for (const range of ['bytes=10-', 'bytes=10-12', 'bytes=-0']) {
    t.is(await getErrorName(t, read(range)), 'InvalidRange');
  }
});

test('conditional reads return 304 or 412 as HTTP specifies', async (t) => {
  const { client } = await startTestServer(t);
  const { ETag = '' } = await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x' }));
  const read = async (condition: object): Promise<number | undefined> => {
    try {
      const download = await client.send(new GetObjectCommand({ Bucket, Key: 'k', ...condition }));
      return download.$metadata.httpStatusCode;
    } catch (error) {
      return (error as { $metadata: { httpStatusCode?: number } }).$metadata.httpStatusCode;
    }
  };
  t.is(await read({ IfNoneMatch: ETag }), 304);
  t.is(await read({ IfNoneMatch: '"other"' }), 200);
  t.is(await read({ IfMatch: ETag }), 200);
  t.is(await read({ IfMatch: '"other"' }), 412);
  t.is(await read({ IfModifiedSince: new Date(Date.now() + 60_000) }), 304);
  t.is(await read({ IfUnmodifiedSince: new Date(Date.now() - 60_000) }), 412);
});

test('If-None-Match: * lets exactly one of many concurrent uploads succeed', async (t) => {
  const { client } = await startTestServer(t);
  const attempts = await Promise.allSettled(
    Array.from({ length: 8 }, (_, index) =>
      client.send(new PutObjectCommand({ Bucket, Key: 'once', Body: String(index), IfNoneMatch: '*' })),
    ),
  );
  t.is(attempts.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('after concurrent uploads to one key, exactly one of the uploads is stored, and it is complete', async (t) => {
  const { client } = await startTestServer(t);
  const bodies = Array.from({ length: 12 }, () => makeBytes(100_000));
  await Promise.all(
    bodies.map((Body, index) =>
      client.send(new PutObjectCommand({ Bucket, Key: 'k', Body, Metadata: { index: String(index) } })),
    ),
  );
  const download = await client.send(new GetObjectCommand({ Bucket, Key: 'k' }));
  const bytes = Buffer.from((await download.Body?.transformToByteArray()) ?? []);
  t.true(bytes.equals(bodies[Number(download.Metadata?.['index'])] ?? Buffer.alloc(0)));
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
  t.deepEqual(
    Contents.map(({ Key, ETag }) => [Key, ETag]),
    [['k', md5Etag(bytes)]],
  );
});

test('a read in progress gets the old object to its end, even if the object is overwritten or deleted meanwhile', async (t) => {
  const { client } = await startTestServer(t);
  const body = makeBytes(4_000_000);
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: body }));
  const download = await client.send(new GetObjectCommand({ Bucket, Key: 'k' }));
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'new' }));
  await client.send(new DeleteObjectCommand({ Bucket, Key: 'k' }));
  t.true(body.equals((await download.Body?.transformToByteArray()) ?? Buffer.alloc(0)));
});

test('deleted objects are gone, and deleting a missing object is not an error', async (t) => {
  const { client } = await startTestServer(t);
  for (const Key of ['a', 'b', 'c & <d>'])
    await client.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }));
  await client.send(new DeleteObjectCommand({ Bucket, Key: 'a' }));
  t.is(await getErrorName(t, client.send(new GetObjectCommand({ Bucket, Key: 'a' }))), 'NoSuchKey');
  t.is(await getErrorName(t, client.send(new HeadObjectCommand({ Bucket, Key: 'a' }))), 'NotFound');
  const deletion = { Objects: [{ Key: 'b' }, { Key: 'c & <d>' }, { Key: 'never was' }] };
  const { Deleted } = await client.send(new DeleteObjectsCommand({ Bucket, Delete: deletion }));
  t.deepEqual(
    Deleted?.map(({ Key }) => Key),
    ['b', 'c & <d>', 'never was'],
  );
  t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 0);
});

test('a listing pages through prefixes and common prefixes without loss or repetition', async (t) => {
  const { client } = await startTestServer(t);
  const keys = ['a', 'dir/1', 'dir/2', 'dir/sub/3', 'other/4', 'z with space & <sign>', 'я'];
  for (const Key of keys) await client.send(new PutObjectCommand({ Bucket, Key, Body: 'x' }));
  const found: (string | undefined)[] = [];
  for await (const page of paginateListObjectsV2({ client, pageSize: 2 }, { Bucket })) {
    found.push(...(page.Contents ?? []).map(({ Key }) => Key));
  }
  t.deepEqual(found, keys);

  const top: (string | undefined)[] = [];
  for await (const page of paginateListObjectsV2({ client, pageSize: 1 }, { Bucket, Delimiter: '/' })) {
    top.push(...(page.Contents ?? []).map(({ Key }) => Key));
    top.push(...(page.CommonPrefixes ?? []).map(({ Prefix }) => Prefix));
  }
  t.deepEqual(top, ['a', 'dir/', 'other/', 'z with space & <sign>', 'я']);

  const inDir = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'dir/', Delimiter: '/' }));
  t.deepEqual(
    inDir.Contents?.map(({ Key }) => Key),
    ['dir/1', 'dir/2'],
  );
  t.deepEqual(
    inDir.CommonPrefixes?.map(({ Prefix }) => Prefix),
    ['dir/sub/'],
  );
  const later = await client.send(new ListObjectsV2Command({ Bucket, StartAfter: 'dir/2', MaxKeys: 1 }));
  t.is(later.Contents?.[0]?.Key, 'dir/sub/3');
  t.true(later.IsTruncated);
  const encoded = await client.send(new ListObjectsV2Command({ Bucket, Prefix: 'z', EncodingType: 'url' }));
  t.is(encoded.Contents?.[0]?.Key, 'z%20with%20space%20%26%20%3Csign%3E');
  const bad = client.send(new ListObjectsV2Command({ Bucket, ContinuationToken: '!' }));
  t.is(await getErrorName(t, bad), 'InvalidArgument');
});

test('a bucket can be created only once, a missing one is reported, and only an empty one can be deleted', async (t) => {
  const { client } = await startTestServer(t);
  await client.send(new HeadBucketCommand({ Bucket }));
  const missing = { Bucket: 'nowhere' };
  t.is(await getErrorName(t, client.send(new HeadBucketCommand(missing))), 'NotFound');
  t.is(await getErrorName(t, client.send(new CreateBucketCommand({ Bucket }))), 'BucketAlreadyOwnedByYou');
  const put = client.send(new PutObjectCommand({ ...missing, Key: 'k', Body: 'x' }));
  t.is(await getErrorName(t, put), 'NoSuchBucket');
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x' }));
  t.is(await getErrorName(t, client.send(new DeleteBucketCommand({ Bucket }))), 'BucketNotEmpty');
  await client.send(new DeleteObjectCommand({ Bucket, Key: 'k' }));
  await client.send(new DeleteBucketCommand({ Bucket }));
  t.is(await getErrorName(t, client.send(new HeadBucketCommand({ Bucket }))), 'NotFound');
  await t.notThrowsAsync(client.send(new CreateBucketCommand({ Bucket })));
});

test('unsupported operations are reported as not implemented', async (t) => {
  const { client } = await startTestServer(t);
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x' }));
  const unsupportedOperations = [
    () => client.send(new CopyObjectCommand({ Bucket, Key: 'l', CopySource: `${Bucket}/k` })),
    () => client.send(new GetObjectCommand({ Bucket, Key: 'k', VersionId: '1' })),
    () => client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x', Tagging: 'a=b' })),
    () => client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x', ACL: 'public-read' })),
    () => client.send(new DeleteObjectCommand({ Bucket, Key: 'k', IfMatch: '"other"' })),
  ];
  for (const request of unsupportedOperations) t.is(await getErrorName(t, request()), 'NotImplemented');
});

test('objects over the limit are rejected, whether by one byte or by many megabytes', async (t) => {
  const { client } = await startTestServer(t, { maxObjectBytes: 1000 });
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: makeBytes(1000) }));
  for (const Body of [makeBytes(1001), makeBytes(30_000_000)]) {
    const put = client.send(new PutObjectCommand({ Bucket, Key: 'big', Body }));
    t.is(await getErrorName(t, put), 'EntityTooLarge');
  }
  t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 1);
});

test('after a restart, objects, metadata and listings are unchanged', async (t) => {
  const first = await startTestServer(t);
  for (const Key of ['a', '../b', 'c/d']) {
    await first.client.send(
      new PutObjectCommand({ Bucket, Key, Body: `body of ${Key}`, Metadata: { of: 'me' } }),
    );
  }
  await first.close();
  const { client } = await startTestServer(t, { dir: first.dir });
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
  t.deepEqual(
    Contents.map(({ Key }) => Key),
    ['../b', 'a', 'c/d'],
  );
  const download = await client.send(new GetObjectCommand({ Bucket, Key: '../b' }));
  t.is(await download.Body?.transformToString(), 'body of ../b');
  t.deepEqual(download.Metadata, { of: 'me' });
});

function* splitBytes(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 30_000) yield bytes.subarray(start, start + 30_000);
}
