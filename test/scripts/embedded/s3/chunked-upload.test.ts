import { GetObjectCommand, ListObjectsV2Command } from '@aws-sdk/client-s3';
import test from 'ava';
import { createChecksum } from '../../../../scripts/embedded/s3/checksums.ts';
import { hashHex, signText } from '../../../../scripts/embedded/s3/signature.ts';
import { bucketName as Bucket, makeBytes, sendRaw, signRequest, startTestServer } from './support.ts';
import type { RawResponse, SignedHeaders } from './support.ts';

const target = `/${Bucket}/k`;
const body = makeBytes(20_000);

interface Upload {
  payloadHash: string;
  encode: (signed: SignedHeaders) => Buffer;
  trailer?: string;
  decodedLength?: number;
}

function upload(
  endpoint: string,
  { payloadHash, encode, trailer, decodedLength }: Upload,
): Promise<RawResponse> {
  const signed = signRequest(endpoint, {
    method: 'PUT',
    target,
    payloadHash,
    headers: {
      'content-encoding': 'aws-chunked',
      'x-amz-decoded-content-length': String(decodedLength ?? body.length),
      ...(trailer === undefined ? {} : { 'x-amz-trailer': trailer }),
    },
  });
  const encoded = encode(signed);
  const headers = { ...signed.headers, 'content-length': String(encoded.length) };
  return sendRaw(endpoint, { method: 'PUT', target, headers, body: encoded });
}

function encodeUnsigned(trailers: string): Buffer {
  return Buffer.concat([
    Buffer.from('3000\r\n'),
    body.subarray(0, 0x3000),
    Buffer.from(`\r\n${(body.length - 0x3000).toString(16)}\r\n`),
    body.subarray(0x3000),
    Buffer.from(`\r\n0\r\n${trailers}\r\n`),
  ]);
}

function encodeSigned(
  { signature, signingKey, timestamp, scope }: SignedHeaders,
  trailers: string[],
): Buffer {
  const parts: Buffer[] = [];
  let previous = signature;
  for (const chunk of [body.subarray(0, 8192), body.subarray(8192), Buffer.alloc(0)]) {
    previous = signText(
      signingKey,
      `AWS4-HMAC-SHA256-PAYLOAD\n${timestamp}\n${scope}\n${previous}\n${hashHex('')}\n${hashHex(chunk)}`,
    );
    parts.push(Buffer.from(`${chunk.length.toString(16)};chunk-signature=${previous}\r\n`), chunk);
    if (chunk.length > 0) parts.push(Buffer.from('\r\n'));
  }
  if (trailers.length > 0) {
    const canonical = trailers.map((line) => `${line}\n`).join('');
    const signed = signText(
      signingKey,
      `AWS4-HMAC-SHA256-TRAILER\n${timestamp}\n${scope}\n${previous}\n${hashHex(canonical)}`,
    );
    parts.push(Buffer.from(`${[...trailers, `x-amz-trailer-signature:${signed}`].join('\r\n')}\r\n`));
  }
  parts.push(Buffer.from('\r\n'));
  return Buffer.concat(parts);
}

function checksumOf(bytes: Buffer): string {
  const checksum = createChecksum('crc32');
  checksum.update(bytes);
  return checksum.digest();
}

const trailerLine = `x-amz-checksum-crc32:${checksumOf(body)}`;
const wrongLine = `x-amz-checksum-crc32:${checksumOf(Buffer.from('other'))}`;
const unsigned = {
  payloadHash: 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
  trailer: 'x-amz-checksum-crc32',
};
const signed = { payloadHash: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' };
const signedTrailer = {
  payloadHash: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
  trailer: 'x-amz-checksum-crc32',
};

const accepted: Record<string, Upload> = {
  'unsigned with a trailer': { ...unsigned, encode: () => encodeUnsigned(`${trailerLine}\r\n`) },
  'signed chunks': { ...signed, encode: (s) => encodeSigned(s, []) },
  'signed chunks and a signed trailer': { ...signedTrailer, encode: (s) => encodeSigned(s, [trailerLine]) },
};

for (const [name, options] of Object.entries(accepted)) {
  test(`a chunked upload is decoded before it is stored: ${name}`, async (t) => {
    const { endpoint, client } = await startTestServer(t);
    const response = await upload(endpoint, options);
    t.is(response.status, 200, response.body.toString());
    const download = await client.send(new GetObjectCommand({ Bucket, Key: 'k' }));
    t.true(body.equals((await download.Body?.transformToByteArray()) ?? Buffer.alloc(0)));
    t.is(download.ContentEncoding, undefined);
  });
}

function corrupt(bytes: Buffer, position: number): Buffer {
  bytes[position] = (bytes[position] ?? 0) ^ 1;
  return bytes;
}

const rejectedUploads: Record<string, [Upload, code: string]> = {
  'a wrong checksum in the trailer': [
    { ...unsigned, encode: () => encodeUnsigned(`${wrongLine}\r\n`) },
    'BadDigest',
  ],
  'a byte changed in transit': [
    { ...unsigned, encode: () => corrupt(encodeUnsigned(`${trailerLine}\r\n`), 1000) },
    'BadDigest',
  ],
  'an announced trailer that is missing': [
    { ...unsigned, encode: () => encodeUnsigned('') },
    'MalformedTrailerError',
  ],
  'a trailer that was not announced': [
    { ...unsigned, encode: () => encodeUnsigned(`${trailerLine}\r\nx-amz-meta-a:b\r\n`) },
    'MalformedTrailerError',
  ],
  'bytes after the end': [
    { ...unsigned, encode: () => Buffer.concat([encodeUnsigned(`${trailerLine}\r\n`), Buffer.from('more')]) },
    'MalformedTrailerError',
  ],
  'a byte changed in a signed chunk': [
    { ...signed, encode: (s) => corrupt(encodeSigned(s, []), 1000) },
    'SignatureDoesNotMatch',
  ],
  'chunks without signatures where they must be signed': [
    { ...signed, encode: () => encodeUnsigned('') },
    'SignatureDoesNotMatch',
  ],
  'a last chunk cut off': [
    { ...signed, encode: (s) => encodeSigned(s, []).subarray(0, 15_000) },
    'IncompleteBody',
  ],
  'a trailer without its signature': [
    {
      ...signedTrailer,
      encode: (s) =>
        Buffer.concat([encodeSigned(s, []).subarray(0, -2), Buffer.from(`${trailerLine}\r\n\r\n`)]),
    },
    'SignatureDoesNotMatch',
  ],
  'a correctly signed trailer with a wrong checksum': [
    { ...signedTrailer, encode: (s) => encodeSigned(s, [wrongLine]) },
    'BadDigest',
  ],
  'more bytes than announced': [
    { ...signed, decodedLength: body.length - 1, encode: (s) => encodeSigned(s, []) },
    'IncompleteBody',
  ],
  'fewer bytes than announced': [
    { ...signed, decodedLength: body.length + 1, encode: (s) => encodeSigned(s, []) },
    'IncompleteBody',
  ],
  'a chunk size that is not a number': [
    { ...unsigned, encode: () => Buffer.from('zz\r\n') },
    'InvalidChunkSizeError',
  ],
  'a chunk header without an end': [
    { ...unsigned, encode: () => Buffer.alloc(100_000, '0') },
    'InvalidChunkSizeError',
  ],
  'an unknown checksum': [
    { ...unsigned, trailer: 'x-amz-checksum-md4', encode: () => encodeUnsigned('') },
    'NotImplemented',
  ],
};

for (const [name, [options, code]] of Object.entries(rejectedUploads)) {
  test(`a chunked upload is rejected and nothing is stored: ${name}`, async (t) => {
    const { endpoint, client } = await startTestServer(t);
    t.is((await upload(endpoint, options)).code, code);
    t.is((await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount, 0);
  });
}

test('a chunked upload without its decoded length is rejected', async (t) => {
  const { endpoint } = await startTestServer(t);
  const request = { method: 'PUT', target, payloadHash: signed.payloadHash, body: 'x' };
  const { headers } = signRequest(endpoint, request);
  const response = await sendRaw(endpoint, { ...request, headers: { ...headers, 'content-length': '1' } });
  t.is(response.code, 'MissingContentLength');
});
