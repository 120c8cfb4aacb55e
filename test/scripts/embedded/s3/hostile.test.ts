import { readdir, readFile, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import test from 'ava';
import { waitFor } from '../../../support/wait-for.ts';
import {
  bucketName as Bucket,
  createClient,
  credentials,
  getErrorName,
  makeBytes,
  sendRaw,
  sendSigned,
  signRequest,
  startTestServer,
} from './support.ts';

const target = `/${Bucket}/k`;

test('a request without a signature is rejected and reveals nothing', async (t) => {
  const { endpoint } = await startTestServer(t);
  for (const path of ['/', target, '/nowhere/k', `/${Bucket}?list-type=2`]) {
    const response = await sendRaw(endpoint, { target: path });
    t.is(response.status, 403);
    t.is(response.code, 'AccessDenied');
    t.truthy(response.headers['x-amz-request-id']);
  }
});

test('a wrong secret, an unknown key and a changed signature are rejected', async (t) => {
  const { endpoint } = await startTestServer(t);
  const wrongSecret = createClient(t, endpoint, { credentials: { ...credentials, secretAccessKey: 'no' } });
  const wrongKey = createClient(t, endpoint, { credentials: { ...credentials, accessKeyId: 'AKIDOTHER' } });
  const command = new PutObjectCommand({ Bucket, Key: 'k', Body: 'x' });
  t.is(await getErrorName(t, wrongSecret.send(command)), 'SignatureDoesNotMatch');
  t.is(await getErrorName(t, wrongKey.send(command)), 'InvalidAccessKeyId');
  const { headers } = signRequest(endpoint, { target });
  const authorization = headers['authorization'] ?? '';
  const flipped = authorization.replace(/.$/, authorization.endsWith('0') ? '1' : '0');
  const response = await sendRaw(endpoint, { target, headers: { ...headers, authorization: flipped } });
  t.is(response.code, 'SignatureDoesNotMatch');
  t.false(response.body.includes(credentials.secretAccessKey));
});

test('a changed method, path, query or signed header invalidates the signature', async (t) => {
  const { endpoint } = await startTestServer(t);
  const signed = signRequest(endpoint, { target, headers: { 'x-amz-meta-a': '1', range: 'bytes=0-1' } });
  const changes = [
    { target, method: 'DELETE' },
    { target: `${target}2` },
    { target: `${target}?response-content-type=text/html` },
    { target, headers: { 'x-amz-meta-a': '2' } },
    { target, headers: { range: 'bytes=0-2' } },
    { target, headers: { host: 'elsewhere' } },
  ];
  for (const change of changes) {
    const response = await sendRaw(endpoint, {
      ...change,
      headers: { ...signed.headers, ...change.headers },
    });
    t.is(response.code, 'SignatureDoesNotMatch', JSON.stringify(change));
  }
});

test('an unsigned x-amz header is rejected', async (t) => {
  const { endpoint } = await startTestServer(t);
  const { headers } = signRequest(endpoint, { target });
  const response = await sendRaw(endpoint, { target, headers: { ...headers, 'x-amz-meta-a': '1' } });
  t.is(response.code, 'AccessDenied');
});

test('a malformed authorization is rejected with an S3 error and does not crash the server', async (t) => {
  const { endpoint } = await startTestServer(t);
  const { headers } = signRequest(endpoint, { target });
  const good = headers['authorization'] ?? '';
  const cases: [string, string][] = [
    ['AWS AKID:sig', 'InvalidRequest'],
    ['AWS4-HMAC-SHA256', 'AuthorizationHeaderMalformed'],
    ['AWS4-HMAC-SHA256 Credential=a/b/c', 'AuthorizationHeaderMalformed'],
    [good.replace(/Signature=.*/, 'Signature=zz'), 'AuthorizationHeaderMalformed'],
    [good.replace(/SignedHeaders=[^,]*/, 'SignedHeaders=host;HOST'), 'AuthorizationHeaderMalformed'],
    [good.replace(/SignedHeaders=[^,]*/, 'SignedHeaders=x-amz-date'), 'AccessDenied'],
    [good.replace('/s3/', '/ec2/'), 'AuthorizationHeaderMalformed'],
    [good.replace(/\/\d{8}\//, '/20200101/'), 'AuthorizationHeaderMalformed'],
    [`${good}, Signature=${'0'.repeat(64)}`, 'AuthorizationHeaderMalformed'],
  ];
  for (const [authorization, code] of cases) {
    const response = await sendRaw(endpoint, { target, headers: { ...headers, authorization } });
    t.is(response.code, code, authorization);
  }
});

test('if the server has a region, requests for other regions are rejected', async (t) => {
  const { endpoint } = await startTestServer(t, { region: 'us-east-1' });
  const response = await sendSigned(endpoint, { target, region: 'eu-west-1' });
  t.is(response.code, 'AuthorizationHeaderMalformed');
});

test('a request is rejected if its time is more than 15 minutes before or after that of the server', async (t) => {
  const { endpoint } = await startTestServer(t);
  for (const [offsetMs, code] of [
    [-16 * 60_000, 'RequestTimeTooSkewed'],
    [16 * 60_000, 'RequestTimeTooSkewed'],
    [-14 * 60_000, 'NoSuchKey'],
    [14 * 60_000, 'NoSuchKey'],
  ] as const) {
    t.is((await sendSigned(endpoint, { target, nowMs: Date.now() + offsetMs })).code, code);
  }
});

test('a body that does not match its signed digest, MD5 or checksum is not stored', async (t) => {
  const { endpoint, client } = await startTestServer(t);
  const cases: [Record<string, string>, string][] = [
    [{ 'content-md5': 'AAAAAAAAAAAAAAAAAAAAAA==' }, 'BadDigest'],
    [{ 'content-md5': 'nonsense' }, 'InvalidDigest'],
    [{ 'x-amz-checksum-crc32': 'AAAAAA==' }, 'BadDigest'],
    [{ 'x-amz-checksum-sha256': `${'A'.repeat(43)}=` }, 'BadDigest'],
    [{ 'x-amz-checksum-crc32': 'AAAA' }, 'InvalidRequest'],
    [{ 'x-amz-checksum-crc32': 'AAAAAA==', 'x-amz-checksum-crc32c': 'AAAAAA==' }, 'InvalidRequest'],
    [{ 'x-amz-checksum-sha512': 'AAAA' }, 'NotImplemented'],
  ];
  for (const [headers, code] of cases) {
    const response = await sendSigned(endpoint, { method: 'PUT', target, headers, body: 'body' });
    t.is(response.code, code, JSON.stringify(headers));
  }
  const { headers } = signRequest(endpoint, { method: 'PUT', target, body: 'body' });
  const tampered = await sendRaw(endpoint, {
    method: 'PUT',
    target,
    headers: { ...headers, 'content-length': '4' },
    body: 'b0dy',
  });
  t.is(tampered.code, 'XAmzContentSHA256Mismatch');
  const odd = await sendSigned(endpoint, { method: 'PUT', target, body: 'x', payloadHash: 'whatever' });
  t.is(odd.code, 'InvalidArgument');
  t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 0);
});

test('an upload without a length is rejected, and one that is cut off is not stored', async (t) => {
  const { endpoint, client, dir } = await startTestServer(t);
  const { headers } = signRequest(endpoint, { method: 'PUT', target, payloadHash: 'UNSIGNED-PAYLOAD' });
  const chunked = { ...headers, 'transfer-encoding': 'chunked' };
  const response = await sendRaw(endpoint, { method: 'PUT', target, headers: chunked, body: 'body' });
  t.is(response.status, 411);
  t.is(response.code, 'MissingContentLength');

  const { hostname, port } = new URL(endpoint);
  const socket = connect(Number(port), hostname);
  const lines = Object.entries({ ...headers, 'content-length': '1000000' }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.write(`PUT ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${'x'.repeat(5000)}`);
  await waitFor("the upload's file to appear", async () => (await readdir(join(dir, 'temp'))).length === 1);
  socket.destroy();
  await waitFor(
    "the upload's file to disappear",
    async () => (await readdir(join(dir, 'temp'))).length === 0,
  );
  t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 0);
});

test('a rejected upload still gets its response, and if its client waits for 100 Continue, the body is never sent', async (t) => {
  const { endpoint } = await startTestServer(t);
  const body = makeBytes(8_000_000);
  const big = await sendRaw(endpoint, { method: 'PUT', target, headers: {}, body });
  t.is(big.code, 'AccessDenied');

  const { hostname, port } = new URL(endpoint);
  const socket = connect(Number(port), hostname);
  socket.write(`PUT ${target} HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 1000\r\n\r\n`);
  let answer = '';
  for await (const part of socket) answer += String(part);
  t.regex(answer, /^HTTP\/1\.1 403 /);
});

test('keys that look like paths are treated as plain keys, and no file is written outside the data folder', async (t) => {
  const { client, dir } = await startTestServer(t);
  const keys = [
    '../../escaped',
    '..',
    '.',
    '/',
    '//etc/passwd',
    'a/../../b',
    'a%2Fb',
    'a/b',
    '..\\..\\c',
    'nul\u0000byte',
    'line\r\nbreak',
    "quote'()*!~ +=&?#",
    'ключ/キー/\u{1f511}',
    `long${'x'.repeat(1020)}`,
    '__proto__',
  ];
  const before = await readdir(dirname(dir));
  for (const Key of keys) {
    await client.send(new PutObjectCommand({ Bucket, Key, Body: `body of ${Key}` }));
  }
  for (const Key of keys) {
    const got = await client.send(new GetObjectCommand({ Bucket, Key }));
    t.is(await got.Body?.transformToString(), `body of ${Key}`);
  }
  t.is((await client.send(new ListObjectsV2Command({ Bucket, EncodingType: 'url' }))).KeyCount, keys.length);
  const after = await readdir(dirname(dir));
  t.false(after.some((name) => !before.includes(name) && name.includes('escaped')));
  for (const name of await readdir(join(dir, 'buckets', Bucket, 'objects'), { recursive: true })) {
    t.regex(name, /^[\da-f]{2}(?:\/[\da-f]{64})?$/);
  }
});

test('path traversal in a raw request, encoded or not, does not read any file', async (t) => {
  const { endpoint, dir } = await startTestServer(t);
  const targets = [
    '/../../../../etc/passwd',
    `/${Bucket}/../../../../../../etc/passwd`,
    `/${Bucket}/..%2f..%2f..%2f..%2fetc%2fpasswd`,
    `/${Bucket}/%2e%2e/%2e%2e/lock`,
    '/..%2F..%2Fetc/passwd',
    '/%2e%2e/lock',
    '/.%2e',
  ];
  for (const path of targets) {
    const read = await sendSigned(endpoint, { target: path });
    t.true(['NoSuchKey', 'NoSuchBucket', 'NotImplemented'].includes(read.code), `${path} ${read.code}`);
  }
  for (const path of [
    '/..',
    '/..%2Fescaped',
    '/a%2Fb',
    '/A',
    '/x',
    '/1.2.3.4',
    '/a..b',
    `/${'a'.repeat(64)}`,
  ]) {
    t.is((await sendSigned(endpoint, { method: 'PUT', target: path })).code, 'InvalidBucketName', path);
  }
  await t.throwsAsync(stat(join(dir, 'escaped')));
  t.deepEqual((await readdir(dir)).sort(), ['buckets', 'lock', 'temp']);
  t.truthy(await readFile(join(dir, 'lock'), 'utf8'));
});

test('an invalid URL or a key over 1024 bytes gets an S3 error', async (t) => {
  const { endpoint } = await startTestServer(t);
  t.is((await sendRaw(endpoint, { target: `/${Bucket}/%ff` })).code, 'InvalidURI');
  t.is((await sendRaw(endpoint, { target: `/${Bucket}/%zz` })).code, 'InvalidURI');
  t.is((await sendRaw(endpoint, { target: `/${Bucket}/k?a=%` })).code, 'InvalidURI');
  const long = await sendSigned(endpoint, { target: `/${Bucket}/${'x'.repeat(1025)}` });
  t.is(long.code, 'KeyTooLongError');
});

test('a repeated header is rejected if the meaning of the request depends on it', async (t) => {
  const { endpoint } = await startTestServer(t);
  const { headers } = signRequest(endpoint, { target });
  const { hostname, port } = new URL(endpoint);
  const socket = connect(Number(port), hostname);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  lines.push('range: bytes=0-0', 'range: bytes=1-1', 'connection: close');
  socket.write(`GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  let answer = '';
  for await (const part of socket) answer += String(part);
  t.regex(answer, /<Code>InvalidRequest<\/Code>/);
});

test('a deletion list that is malformed, too long or without a digest is rejected as a whole', async (t) => {
  const { endpoint, client } = await startTestServer(t);
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x' }));
  const list = '<Delete><Object><Key>k</Key></Object></Delete>';
  const post = { method: 'POST', target: `/${Bucket}?delete` };
  t.is((await sendSigned(endpoint, { ...post, body: list })).code, 'InvalidRequest');
  const send = (body: string) => {
    const digest = Buffer.from(
      signRequest(endpoint, { ...post, body }).headers['x-amz-content-sha256'] ?? '',
      'hex',
    );
    return sendSigned(endpoint, {
      ...post,
      body,
      headers: { 'x-amz-checksum-sha256': digest.toString('base64') },
    });
  };
  t.is((await send(list.slice(0, -3))).code, 'MalformedXML');
  t.is((await send(`<!DOCTYPE x>${list}`)).code, 'MalformedXML');
  t.is((await send(`<Delete>${'<Object><Key>k</Key></Object>'.repeat(1001)}</Delete>`)).code, 'MalformedXML');
  t.is(
    (await send('<Delete><Object><Key>k</Key><VersionId>1</VersionId></Object></Delete>')).code,
    'NotImplemented',
  );
  t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 1);
  t.is((await send(list)).status, 200);
  t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 0);
});

test('response header overrides cannot add further headers', async (t) => {
  const { client } = await startTestServer(t);
  await client.send(new PutObjectCommand({ Bucket, Key: 'k', Body: 'x' }));
  for (const value of ['a\r\nset-cookie: b', 'имя']) {
    const url = await getSignedUrl(
      client,
      new GetObjectCommand({ Bucket, Key: 'k', ResponseContentDisposition: value }),
    );
    const response = await fetch(url);
    t.is(response.status, 400);
    t.regex(await response.text(), /<Code>InvalidArgument<\/Code>/);
  }
});
