import { GetObjectCommand, HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import test from 'ava';
import { bucketName as Bucket, createClient, startTestServer } from './support.ts';

/** The time in the link at which it was signed: on a busy machine this is later than the start of the test. */
function readSignedAt(url: string): number {
  const [year, month, day, hours, minutes, seconds] = new URL(url).searchParams
    .get('X-Amz-Date')!
    .match(/^\d{4}|\d\d/g)!
    .map(Number);
  return Date.UTC(year!, month! - 1, day, hours, minutes, seconds);
}

test('a presigned link works until it expires, with the headers it specifies', async (t) => {
  let nowMs = Date.now();
  const { client } = await startTestServer(t, { now: () => nowMs });
  await client.send(
    new PutObjectCommand({ Bucket, Key: 'я/a b.png', Body: 'bytes', ContentType: 'image/png' }),
  );
  const url = await getSignedUrl(
    client,
    new GetObjectCommand({
      Bucket,
      Key: 'я/a b.png',
      ResponseContentType: 'text/plain',
      ResponseContentDisposition: 'attachment; filename="a.png"',
    }),
    { expiresIn: 600 },
  );
  const response = await fetch(url, { headers: { range: 'bytes=1-2' } });
  t.is(response.status, 206);
  t.is(await response.text(), 'yt');
  t.is(response.headers.get('content-type'), 'text/plain');
  t.is(response.headers.get('content-disposition'), 'attachment; filename="a.png"');

  const signedAtMs = readSignedAt(url);
  nowMs = signedAtMs + 599_000;
  t.is((await fetch(url)).status, 200);
  nowMs = signedAtMs + 601_000;
  const expired = await fetch(url);
  t.is(expired.status, 403);
  const text = await expired.text();
  t.regex(text, /<Code>AccessDenied<\/Code>/);
  t.regex(text, /Request has expired/);
});

test('a link is valid only for its own method, key and parameters', async (t) => {
  const { client, endpoint } = await startTestServer(t);
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x' }));
  await client.send(new PutObjectCommand({ Bucket, Key: 'secret', Body: 'x' }));
  const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'k' }), { expiresIn: 60 });
  t.is((await fetch(url)).status, 200);
  const tampered = [
    url.replace('/k?', '/secret?'),
    url.replace('X-Amz-Expires=60', 'X-Amz-Expires=604800'),
    `${url}&response-content-type=text%2Fhtml`,
    url.replace(/X-Amz-Date=\d{8}T\d{6}Z/, (date) => date.replace(/\d\dZ/, '99Z')),
    url.replace(/(?<=X-Amz-Signature=)./, (digit) => (digit === '0' ? '1' : '0')),
    `${url}&X-Amz-Expires=604800`,
    url.replace('X-Amz-Expires=60', 'X-Amz-Expires=604801'),
    url.replace('X-Amz-Expires=60', 'X-Amz-Expires=-1'),
    url.replace(/&X-Amz-Signature=[^&]*/, ''),
    url.replace('AKIDTEST', 'AKIDOTHER'),
  ];
  for (const link of tampered) {
    const response = await fetch(link);
    t.true(response.status === 403 || response.status === 400, link);
  }
  t.is((await fetch(url, { method: 'DELETE' })).status, 403);
  t.is((await fetch(url, { method: 'PUT', body: 'y' })).status, 403);
  t.is((await fetch(url, { headers: { 'x-amz-meta-a': 'b' } })).status, 403);
  t.is((await fetch(url, { headers: { authorization: 'AWS4-HMAC-SHA256 x' } })).status, 400);
  const other = createClient(t, endpoint, {
    credentials: { accessKeyId: 'AKIDTEST', secretAccessKey: 'guessed' },
  });
  const forged = await getSignedUrl(other, new GetObjectCommand({ Bucket, Key: 'k' }));
  t.is((await fetch(forged)).status, 403);
});

test('a presigned upload stores the body with the type and metadata that were signed', async (t) => {
  const { client, endpoint } = await startTestServer(t);
  // Without a checksum, as the SDK's documentation requires for a link whose body is not known yet.
  const signer = createClient(t, endpoint, { requestChecksumCalculation: 'WHEN_REQUIRED' });
  const command = new PutObjectCommand({ Bucket, Key: 'k', ContentType: 'image/png', Metadata: { a: 'b' } });
  const url = await getSignedUrl(signer, command, { signableHeaders: new Set(['content-type']) });
  const response = await fetch(url, {
    method: 'PUT',
    body: 'bytes',
    headers: { 'content-type': 'image/png' },
  });
  t.is(response.status, 200);
  const head = await client.send(new HeadObjectCommand({ Bucket, Key: 'k' }));
  t.is(head.ContentType, 'image/png');
  t.is(head.ContentLength, 5);
  t.deepEqual(head.Metadata, { a: 'b' });
  const wrongType = await fetch(url, {
    method: 'PUT',
    body: 'bytes',
    headers: { 'content-type': 'text/html' },
  });
  t.is(wrongType.status, 403);
});
