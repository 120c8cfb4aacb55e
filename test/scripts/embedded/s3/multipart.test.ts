import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  paginateListParts,
  PutObjectCommand,
  UploadPartCommand,
  UploadPartCopyCommand,
} from '@aws-sdk/client-s3';
import type { ChecksumAlgorithm, S3Client } from '@aws-sdk/client-s3';
import test from 'ava';
import {
  bucketName as Bucket,
  createClient,
  getErrorName,
  makeBytes,
  md5Etag,
  minPartBytes,
  multipartEtag,
  readObject,
  sendSigned,
  startTestServer,
  startUpload,
} from './support.ts';

const first = makeBytes(minPartBytes);
const second = makeBytes(minPartBytes + 1);
const last = makeBytes(17);

async function listUploads(client: S3Client): Promise<(string | undefined)[]> {
  const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket }));
  return Uploads.map(({ Key }) => Key);
}

test('an object uploaded in parts has their bytes in order of their numbers, and the headers of its start', async (t) => {
  const { client } = await startTestServer(t);
  const upload = await startUpload(client, 'a/b', { ContentType: 'text/plain', Metadata: { owner: 'me' } });
  // The order of uploads does not matter, and numbers may have gaps.
  const parts = [await upload.put(10_000, last), await upload.put(2, second), await upload.put(1, first)];
  t.is(parts[2]?.ETag, md5Etag(first));
  t.is(await getErrorName(t, readObject(client, 'a/b')), 'NoSuchKey');
  t.is(await upload.complete(parts.toReversed()), multipartEtag(first, second, last));
  t.true((await readObject(client, 'a/b')).equals(Buffer.concat([first, second, last])));
  const head = await client.send(new HeadObjectCommand({ Bucket, Key: 'a/b' }));
  t.like(head, {
    ContentType: 'text/plain',
    Metadata: { owner: 'me' },
    ETag: multipartEtag(first, second, last),
  });
  t.deepEqual(await listUploads(client), []);
  const range = { Bucket, Key: 'a/b', Range: `bytes=${minPartBytes - 2}-${minPartBytes + 1}` };
  const part = await client.send(new GetObjectCommand(range));
  t.true(
    Buffer.concat([first.subarray(-2), second.subarray(0, 2)]).equals(
      (await part.Body?.transformToByteArray()) ?? Buffer.alloc(0),
    ),
  );
});

test('a part that is uploaded again replaces the earlier one, and only the listed parts become the object', async (t) => {
  const { client } = await startTestServer(t);
  const upload = await startUpload(client, 'k');
  const old = await upload.put(1, last);
  const replaced = await upload.put(1, first);
  await upload.put(2, second);
  const end = await upload.put(3, last);
  t.is(await getErrorName(t, upload.complete([old, end])), 'InvalidPart');
  t.is(await upload.complete([replaced, end]), multipartEtag(first, last));
  t.true((await readObject(client, 'k')).equals(Buffer.concat([first, last])));
});

test('an incorrect list of parts is rejected, and the upload can still be completed', async (t) => {
  const { client } = await startTestServer(t);
  const upload = await startUpload(client, 'k');
  const small = await upload.put(1, last);
  const large = await upload.put(2, first);
  const end = await upload.put(3, last);
  const lists = [
    [[], 'MalformedXML'],
    [[large, small], 'InvalidPartOrder'],
    [[large, large], 'InvalidPartOrder'],
    [[small, large], 'EntityTooSmall'],
    [[{ ...large, PartNumber: 4 }], 'InvalidPart'],
    [[{ ...large, ETag: small.ETag }], 'InvalidPart'],
    [[{ ...large, PartNumber: 0 }], 'InvalidArgument'],
    [[{ ...large, PartNumber: 10_001 }], 'InvalidArgument'],
    [[{ ...large, ChecksumCRC32: 'AAAAAA==' }], 'InvalidPart'],
  ] as const;
  for (const [list, code] of lists) {
    t.is(await getErrorName(t, upload.complete([...list])), code, JSON.stringify(list));
  }
  const announced = { Bucket, Key: 'k', UploadId: upload.id, MpuObjectSize: 1 };
  const wrongSize = new CompleteMultipartUploadCommand({ ...announced, MultipartUpload: { Parts: [large] } });
  t.is(await getErrorName(t, client.send(wrongSize)), 'InvalidRequest');
  t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 0);
  await upload.complete([large, end]);
  t.is((await readObject(client, 'k')).length, first.length + last.length);
});

test('part numbers are 1 to 10000, and a part belongs to an upload of its key', async (t) => {
  const { client } = await startTestServer(t);
  const { id, put } = await startUpload(client, 'k');
  for (const number of [0, 10_001, -1, 1.5]) {
    t.is(await getErrorName(t, put(number, last)), 'InvalidArgument', String(number));
  }
  const send = (Key: string, UploadId: string) =>
    client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: last }));
  for (const [key, uploadId] of [
    ['other', id],
    ['k', 'unknown'],
    ['k', '../k'],
    ['k', `${id}/../${id}`],
    ['k', ''],
  ] as const) {
    t.is(await getErrorName(t, send(key, uploadId)), 'NoSuchUpload', uploadId);
  }
});

test('after an abort or a completion, the upload no longer exists, and its parts are deleted', async (t) => {
  const { client, dir } = await startTestServer(t);
  const aborted = await startUpload(client, 'k');
  await aborted.put(1, last);
  const completed = await startUpload(client, 'k');
  await completed.put(1, last);
  await client.send(new AbortMultipartUploadCommand({ Bucket, Key: 'k', UploadId: aborted.id }));
  await completed.complete();
  for (const { id, put } of [aborted, completed]) {
    const UploadId = id;
    t.is(await getErrorName(t, put(1, last)), 'NoSuchUpload');
    const list = new ListPartsCommand({ Bucket, Key: 'k', UploadId });
    t.is(await getErrorName(t, client.send(list)), 'NoSuchUpload');
    const abort = new AbortMultipartUploadCommand({ Bucket, Key: 'k', UploadId });
    t.is(await getErrorName(t, client.send(abort)), 'NoSuchUpload');
  }
  t.is(await getErrorName(t, aborted.complete()), 'NoSuchUpload');
  t.deepEqual(await readdir(join(dir, 'buckets', Bucket, 'uploads')), []);
  t.deepEqual(await readdir(join(dir, 'temp')), []);
  t.is(await readObject(client, 'k').then(String), String(last));
});

test('a completion that is repeated succeeds with the same result, as long as its object exists', async (t) => {
  const { client } = await startTestServer(t);
  const upload = await startUpload(client, 'k');
  const part = await upload.put(1, first);
  const end = await upload.put(2, last);
  const etag = await upload.complete();
  t.is(await upload.complete(), etag);
  t.is(await getErrorName(t, upload.complete([part])), 'NoSuchUpload');
  t.is(await getErrorName(t, upload.complete([end])), 'NoSuchUpload');
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'new' }));
  t.is(await getErrorName(t, upload.complete()), 'NoSuchUpload');
  t.is(String(await readObject(client, 'k')), 'new');
});

test('of concurrent completions, aborts and parts, each sees either the upload or its object', async (t) => {
  const { client, dir } = await startTestServer(t);
  const upload = await startUpload(client, 'k');
  const parts = [await upload.put(1, first), await upload.put(2, last)];
  const results = await Promise.allSettled([
    upload.complete(parts),
    upload.complete(parts),
    client.send(new AbortMultipartUploadCommand({ Bucket, Key: 'k', UploadId: upload.id })),
    upload.put(3, last),
  ]);
  const codes = results.map((result) =>
    result.status === 'fulfilled' ? 'ok' : (result.reason as Error).name,
  );
  t.log(codes);
  t.true(codes.every((code) => code === 'ok' || code === 'NoSuchUpload'));
  const isComplete = codes[0] === 'ok' || codes[1] === 'ok';
  t.not(isComplete, codes[2] === 'ok');
  const { KeyCount } = await client.send(new ListObjectsV2Command({ Bucket }));
  t.is(KeyCount, isComplete ? 1 : 0);
  if (isComplete) t.true((await readObject(client, 'k')).equals(Buffer.concat([first, last])));
  t.deepEqual(await listUploads(client), []);
  t.deepEqual(await readdir(join(dir, 'buckets', Bucket, 'uploads')), []);
  t.deepEqual(await readdir(join(dir, 'temp')), []);
});

test('a conditional completion applies to the object that it would replace', async (t) => {
  const { client } = await startTestServer(t);
  const upload = await startUpload(client, 'k');
  const Parts = [await upload.put(1, last)];
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'old' }));
  const target = { Bucket, Key: 'k', UploadId: upload.id, MultipartUpload: { Parts } };
  const complete = (condition: object) =>
    client.send(new CompleteMultipartUploadCommand({ ...target, ...condition }));
  t.is(await getErrorName(t, complete({ IfNoneMatch: '*' })), 'PreconditionFailed');
  t.is(await getErrorName(t, complete({ IfMatch: '"other"' })), 'PreconditionFailed');
  await complete({ IfMatch: md5Etag('old') });
  t.is((await readObject(client, 'k')).length, last.length);
});

for (const [algorithm, type] of [
  ['CRC32', 'COMPOSITE'],
  ['CRC32', 'FULL_OBJECT'],
  ['CRC32C', 'FULL_OBJECT'],
  ['CRC64NVME', 'FULL_OBJECT'],
  ['SHA1', 'COMPOSITE'],
  ['SHA256', 'COMPOSITE'],
] as const satisfies [ChecksumAlgorithm, string][]) {
  test(`a ${algorithm} checksum of type ${type} is verified for each part and for the object`, async (t) => {
    const { client } = await startTestServer(t);
    const input = { ChecksumAlgorithm: algorithm, ChecksumType: type };
    const upload = await startUpload(client, 'k', input);
    await upload.put(1, first);
    await upload.put(2, last);
    const target = { Bucket, Key: 'k', UploadId: upload.id, MultipartUpload: { Parts: upload.parts } };
    const complete = (more: object) =>
      client.send(new CompleteMultipartUploadCommand({ ...target, ...more }));
    const wrong = { [`Checksum${algorithm}`]: upload.parts[1]?.[`Checksum${algorithm}`] };
    t.is(await getErrorName(t, complete(wrong)), 'BadDigest');
    const otherType = type === 'COMPOSITE' ? 'FULL_OBJECT' : 'COMPOSITE';
    t.is(await getErrorName(t, complete({ ChecksumType: otherType })), 'InvalidRequest');
    const other = algorithm === 'CRC32' ? 'ChecksumCRC32C' : 'ChecksumCRC32';
    t.is(await getErrorName(t, complete({ [other]: 'AAAAAA==' })), 'InvalidRequest');
    const completed = await complete({ ChecksumType: type });
    const checksum = completed[`Checksum${algorithm}`] ?? '';
    t.is(checksum.endsWith('-2'), type === 'COMPOSITE');
    const got = await client.send(new GetObjectCommand({ Bucket, Key: 'k', ChecksumMode: 'ENABLED' }));
    t.is(got[`Checksum${algorithm}`], checksum);
    t.is(got.ChecksumType, type);
    // For checksums of the whole object, the SDK compares.
    t.is((await got.Body?.transformToByteArray())?.length, first.length + last.length);
    if (type !== 'FULL_OBJECT') return;
    const whole = new PutObjectCommand({
      Bucket,
      Key: 'l',
      Body: Buffer.concat([first, last]),
      ChecksumAlgorithm: algorithm,
    });
    t.is((await client.send(whole))[`Checksum${algorithm}`], checksum);
  });
}

test('if an upload has a checksum algorithm, its parts must use it, and their checksums must be listed', async (t) => {
  const { client, endpoint } = await startTestServer(t);
  const impossible = { ChecksumAlgorithm: 'SHA256', ChecksumType: 'FULL_OBJECT' } as const;
  t.is(await getErrorName(t, startUpload(client, 'k', impossible)), 'InvalidRequest');
  const upload = await startUpload(client, 'k', { ChecksumAlgorithm: 'SHA256' });
  const plain = createClient(t, endpoint, { requestChecksumCalculation: 'WHEN_REQUIRED' });
  const part = { Bucket, Key: 'k', UploadId: upload.id, PartNumber: 1, Body: last };
  t.is(await getErrorName(t, plain.send(new UploadPartCommand(part))), 'InvalidRequest');
  const { PartNumber, ETag } = await upload.put(1, last);
  t.is(await getErrorName(t, upload.complete([{ PartNumber, ETag }])), 'InvalidRequest');
  await upload.complete();
});

test('parts are listed in order of their numbers, page by page', async (t) => {
  const { client } = await startTestServer(t);
  const { id, put } = await startUpload(client, 'k');
  const target = { Bucket, Key: 'k', UploadId: id };
  t.is((await client.send(new ListPartsCommand(target))).Parts, undefined);
  for (const number of [300, 2, 10_000, 10, 1]) await put(number, Buffer.from(`part ${number}`));
  const found: unknown[] = [];
  for await (const page of paginateListParts({ client, pageSize: 2 }, target)) {
    found.push(...(page.Parts ?? []).map(({ PartNumber, Size, ETag }) => [PartNumber, Size, ETag]));
  }
  const expected = [1, 2, 10, 300, 10_000].map((n) => [n, `part ${n}`.length, md5Etag(`part ${n}`)]);
  t.deepEqual(found, expected);
});

test('uploads are listed by key and then by time, page by page, and with common prefixes', async (t) => {
  let nowMs = Date.now();
  const { client } = await startTestServer(t, { now: () => nowMs });
  const ids: string[] = [];
  const keys = ['a', 'dir/1', 'dir/1', 'dir/2', 'z & <я>'];
  for (const key of keys) {
    nowMs += 1;
    ids.push((await startUpload(client, key)).id);
  }
  const list = async (input: object) =>
    await client.send(new ListMultipartUploadsCommand({ Bucket, ...input }));
  const found: unknown[] = [];
  let markers: object = {};
  for (;;) {
    const page = await list({ MaxUploads: 2, ...markers });
    found.push(...(page.Uploads ?? []).map(({ Key, UploadId }) => [Key, UploadId]));
    if (page.IsTruncated !== true) break;
    markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
  t.deepEqual(
    found,
    keys.map((key, index) => [key, ids[index]]),
  );

  const names: unknown[] = [];
  for (let KeyMarker = '', isLast = false; !isLast;) {
    const page = await list({ Delimiter: '/', MaxUploads: 1, KeyMarker });
    names.push(page.Uploads?.[0]?.Key ?? page.CommonPrefixes?.[0]?.Prefix);
    KeyMarker = page.NextKeyMarker ?? '';
    isLast = page.IsTruncated !== true;
  }
  t.deepEqual(names, ['a', 'dir/', 'z & <я>']);
  const inFolder = await list({ Prefix: 'dir/', Delimiter: '/' });
  t.is(inFolder.Uploads?.length, 3);
  t.is((await list({ Prefix: 'z', EncodingType: 'url' })).Uploads?.[0]?.Key, 'z%20%26%20%3C%D1%8F%3E');
  t.is((await list({ MaxUploads: 0 })).Uploads, undefined);
});

test('a bucket has at most a thousand unfinished uploads, and a place is free again after an abort', async (t) => {
  const { client, endpoint } = await startTestServer(t);
  const { id } = await startUpload(client, 'k');
  const start = () => sendSigned(endpoint, { method: 'POST', target: `/${Bucket}/many?uploads=` });
  for (let count = 1; count < 1000; count += 50) {
    await Promise.all(Array.from({ length: Math.min(50, 1000 - count) }, start));
  }
  t.is((await start()).code, 'SlowDown');
  await client.send(new AbortMultipartUploadCommand({ Bucket, Key: 'k', UploadId: id }));
  t.is((await start()).status, 200);
});

test('after a restart, uploads continue where they were', async (t) => {
  const server = await startTestServer(t);
  const upload = await startUpload(server.client, '../k', { Metadata: { a: 'b' } });
  await upload.put(1, first);
  await server.close();
  const { client } = await startTestServer(t, { dir: server.dir });
  t.deepEqual(await listUploads(client), ['../k']);
  const target = { Bucket, Key: '../k', UploadId: upload.id };
  const { ETag } = await client.send(new UploadPartCommand({ ...target, PartNumber: 2, Body: last }));
  const { Parts = [] } = await client.send(new ListPartsCommand(target));
  t.deepEqual(
    Parts.map((part) => part.ETag),
    [md5Etag(first), ETag],
  );
  await client.send(new CompleteMultipartUploadCommand({ ...target, MultipartUpload: { Parts } }));
  t.true((await readObject(client, '../k')).equals(Buffer.concat([first, last])));
});

test('a bucket with unfinished uploads can be deleted, and they do not return with a new bucket of that name', async (t) => {
  const { client } = await startTestServer(t);
  const upload = await startUpload(client, 'k');
  await upload.put(1, last);
  await client.send(new DeleteBucketCommand({ Bucket }));
  t.is(await getErrorName(t, upload.complete()), 'NoSuchBucket');
  t.is(await getErrorName(t, startUpload(client, 'k')), 'NoSuchBucket');
});

test('while a completion takes long, the client gets white space, and then the result or the error', async (t) => {
  const { client, endpoint } = await startTestServer(t, { whiteSpaceIntervalMs: 1 });
  const checksum = { ChecksumAlgorithm: 'CRC64NVME', ChecksumType: 'FULL_OBJECT' };
  const upload = await startUpload(client, 'k', checksum);
  for (const number of [1, 2, 3]) await upload.put(number, second);
  const list = upload.parts.map(
    ({ PartNumber, ETag }) => `<Part><PartNumber>${PartNumber}</PartNumber><ETag>${ETag}</ETag></Part>`,
  );
  const body = `<CompleteMultipartUpload>${list.join('')}</CompleteMultipartUpload>`;
  const complete = (headers = {}) =>
    sendSigned(endpoint, { method: 'POST', target: `/${Bucket}/k?uploadId=${upload.id}`, body, headers });

  // This is known only after all bytes have been read.
  const wrong = upload.parts[0]?.ChecksumCRC64NVME ?? '';
  const failed = await complete({ 'x-amz-checksum-crc64nvme': wrong });
  t.is(failed.status, 200);
  t.regex(failed.body.toString(), /^<\?xml[^>]*\?>\n *<Error><Code>BadDigest</);
  // The SDK recognizes the error in spite of the status.
  const target = { Bucket, Key: 'k', UploadId: upload.id, MultipartUpload: { Parts: upload.parts } };
  const command = new CompleteMultipartUploadCommand({ ...target, ChecksumCRC64NVME: wrong });
  t.is(await getErrorName(t, client.send(command)), 'BadDigest');

  const done = await complete();
  t.is(done.status, 200);
  t.is(done.headers['content-length'], undefined, 'the headers were sent before the length was known');
  t.regex(done.body.toString(), /^<\?xml[^>]*\?>\n *<CompleteMultipartUploadResult/);
  t.is((await readObject(client, 'k')).length, 3 * second.length);
});

test('what multipart uploads do not support is reported as not implemented', async (t) => {
  const { client } = await startTestServer(t);
  await client.send(new PutObjectCommand({ Bucket, Key: 'source', Body: 'x' }));
  const { id } = await startUpload(client, 'k');
  const copy = { Bucket, Key: 'k', UploadId: id, PartNumber: 1, CopySource: `${Bucket}/source` };
  const unsupported = [
    () => client.send(new UploadPartCopyCommand(copy)),
    () => client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'k', Tagging: 'a=b' })),
    () => client.send(new CreateMultipartUploadCommand({ Bucket, Key: 'k', ACL: 'public-read' })),
    () => client.send(new GetObjectCommand({ Bucket, Key: 'source', PartNumber: 1 })),
  ];
  for (const request of unsupported) t.is(await getErrorName(t, request()), 'NotImplemented');
});

test('a part that is damaged or cut off in transit is not stored', async (t) => {
  const { client, endpoint, dir } = await startTestServer(t);
  const { id } = await startUpload(client, 'k');
  const target = `/${Bucket}/k?partNumber=1&uploadId=${id}`;
  const wrong = { 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' };
  t.is((await sendSigned(endpoint, { method: 'PUT', target, body: 'x', headers: wrong })).code, 'BadDigest');
  const { Parts } = await client.send(new ListPartsCommand({ Bucket, Key: 'k', UploadId: id }));
  t.is(Parts, undefined);
  t.deepEqual(await readdir(join(dir, 'temp')), []);
});
