import test from 'ava';
import { decodeChunkedBody } from '../../../../scripts/embedded/s3/chunked-body.ts';
import { parseQuery } from '../../../../scripts/embedded/s3/parse-request.ts';
import { verifySignature } from '../../../../scripts/embedded/s3/signature.ts';

// Examples with signatures published by AWS in the Amazon S3 API Reference: sig-v4-header-based-auth,
// sigv4-query-string-auth, sigv4-streaming and sigv4-streaming-trailers.
const policy = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
  nowMs: Date.parse('2013-05-24T00:00:00Z'),
};
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const credential = 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request';

function makeExample(
  method: string,
  target: string,
  headers: Record<string, string>,
  signature: string,
  host = 'examplebucket.s3.amazonaws.com',
) {
  const [rawPath = '', rawQuery = ''] = target.split('?');
  const all = new Map(Object.entries({ host, 'x-amz-date': '20130524T000000Z', ...headers }));
  const signedHeaders = [...all.keys()].sort().join(';');
  all.set(
    'authorization',
    `AWS4-HMAC-SHA256 Credential=${credential},SignedHeaders=${signedHeaders},Signature=${signature}`,
  );
  return { method, rawPath, query: parseQuery(rawQuery), headers: all };
}

const headerExamples = {
  'GET object with a range': makeExample(
    'GET',
    '/test.txt',
    { range: 'bytes=0-9', 'x-amz-content-sha256': emptyHash },
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  ),
  'PUT object': makeExample(
    'PUT',
    '/test$file.text',
    {
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
    },
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  ),
  'GET bucket lifecycle': makeExample(
    'GET',
    '/?lifecycle',
    { 'x-amz-content-sha256': emptyHash },
    'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  ),
  'list objects': makeExample(
    'GET',
    '/?max-keys=2&prefix=J',
    { 'x-amz-content-sha256': emptyHash },
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  ),
};

for (const [name, example] of Object.entries(headerExamples)) {
  test(`AWS's published example is accepted: ${name}`, (t) => {
    t.notThrows(() => verifySignature(example, policy));
  });

  test(`AWS's published example is rejected with another secret: ${name}`, (t) => {
    t.throws(() => verifySignature(example, { ...policy, secretAccessKey: 'another' }), {
      message: /does not match/,
    });
  });
}

const presignedTarget = `/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encodeURIComponent(credential)}&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404`;

function makePresigned(target: string) {
  const [rawPath = '', rawQuery = ''] = target.split('?');
  const headers = new Map([['host', 'examplebucket.s3.amazonaws.com']]);
  return { method: 'GET', rawPath, query: parseQuery(rawQuery), headers };
}

test("AWS's published presigned example is valid until exactly the moment at which it expires", (t) => {
  const request = makePresigned(presignedTarget);
  t.notThrows(() => verifySignature(request, policy));
  t.notThrows(() => verifySignature(request, { ...policy, nowMs: policy.nowMs + 86_400_000 - 1 }));
  t.throws(() => verifySignature(request, { ...policy, nowMs: policy.nowMs + 86_400_000 }), {
    message: 'Request has expired',
  });
  t.throws(() => verifySignature(request, { ...policy, nowMs: policy.nowMs - 16 * 60_000 }), {
    message: 'Request is not yet valid',
  });
});

test('an expiry of more than a week is rejected, even if correctly signed', (t) => {
  const request = makePresigned(presignedTarget.replace('Expires=86400', 'Expires=604801'));
  t.throws(() => verifySignature(request, policy), { message: /604800/ });
});

const streamingHeaders = {
  'content-encoding': 'aws-chunked',
  'x-amz-decoded-content-length': '66560',
  'x-amz-storage-class': 'REDUCED_REDUNDANCY',
};

function makeChunks(signatures: readonly string[]): Buffer[] {
  const [first = '', second = '', last = ''] = signatures;
  return [
    Buffer.from(`10000;chunk-signature=${first}\r\n${'a'.repeat(65_536)}\r\n`),
    Buffer.from(`400;chunk-signature=${second}\r\n${'a'.repeat(1024)}\r\n`),
    Buffer.from(`0;chunk-signature=${last}\r\n`),
  ];
}

// Split into pieces of seven bytes, because a socket may split the body anywhere, including within line ends.
async function* cut(parts: readonly Buffer[]): AsyncGenerator<Buffer> {
  const bytes = Buffer.concat(parts);
  for (let start = 0; start < bytes.length; start += 7) yield bytes.subarray(start, start + 7);
}

async function countBytes(chunks: AsyncIterable<Buffer>): Promise<number> {
  let size = 0;
  for await (const chunk of chunks) size += chunk.length;
  return size;
}

test("AWS's published chunked upload is accepted, chunk by chunk, and a changed chunk is not", async (t) => {
  const seed = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9';
  const request = makeExample(
    'PUT',
    '/examplebucket/chunkObject.txt',
    {
      ...streamingHeaders,
      'content-length': '66824',
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    },
    seed,
    's3.amazonaws.com',
  );
  const authentication = verifySignature(request, policy);
  const options = {
    signing: { ...authentication, seedSignature: authentication.signature },
    trailerNames: [],
    hasTrailers: false,
  };
  const body = makeChunks([
    'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
    '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
    'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
  ]);
  body.push(Buffer.from('\r\n'));
  t.is(await countBytes(decodeChunkedBody(cut(body), options).chunks), 66_560);

  const changed = Buffer.concat(body);
  changed[40_000] = 0x62;
  await t.throwsAsync(countBytes(decodeChunkedBody(cut([changed]), options).chunks), {
    message: /does not match/,
  });
});

test("AWS's published chunked upload with a trailer is accepted, and a changed trailer is not", async (t) => {
  const request = makeExample(
    'PUT',
    '/examplebucket/chunkObject.txt',
    {
      ...streamingHeaders,
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
      'x-amz-trailer': 'x-amz-checksum-crc32c',
    },
    '106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e',
    's3.amazonaws.com',
  );
  const authentication = verifySignature(request, policy);
  const options = {
    signing: { ...authentication, seedSignature: authentication.signature },
    trailerNames: ['x-amz-checksum-crc32c'],
    hasTrailers: true,
  };
  const body = makeChunks([
    'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2',
    '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7',
    '2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992',
  ]);
  const signed =
    'x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n';
  const good = [...body, Buffer.from(`x-amz-checksum-crc32c:sOO8/Q==\r\n${signed}`)];
  const decoded = decodeChunkedBody(cut(good), options);
  t.is(await countBytes(decoded.chunks), 66_560);
  t.is(decoded.trailers.get('x-amz-checksum-crc32c'), 'sOO8/Q==');

  const bad = [...body, Buffer.from(`x-amz-checksum-crc32c:AAAAAA==\r\n${signed}`)];
  await t.throwsAsync(countBytes(decodeChunkedBody(cut(bad), options).chunks), { message: /does not match/ });
});
