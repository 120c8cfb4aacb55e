import { createHash } from 'node:crypto';
import { checksumAlgorithms, createChecksum, isChecksumAlgorithm, isChecksumValue } from './checksums.ts';
import type { ChecksumAlgorithm } from './checksums.ts';
import { decodeChunkedBody } from './chunked-body.ts';
import { S3Error } from './errors.ts';
import { unsignedPayload } from './signature.ts';
import type { Authentication } from './signature.ts';

export interface PayloadChecksum {
  algorithm: ChecksumAlgorithm;
  value: string;
}

/** A request's decoded body. Once it has been read, everything that its headers require has been verified. */
export interface Payload {
  /** The iteration throws at its end if a digest, a checksum, a signature or the length does not match. */
  chunks: AsyncIterable<Buffer>;
  /** Announced length of the decoded body in bytes. */
  length: number | undefined;
  /** MD5 in hexadecimal. Available once the chunks have been read. */
  md5: () => string;
  /** The checksum the client sent, in a header or a trailer. Available once the chunks have been read. */
  checksum: () => PayloadChecksum | undefined;
}

interface StreamingKind {
  signed: boolean;
  hasTrailers: boolean;
}

const streamingKinds: Readonly<Record<string, StreamingKind>> = {
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD': { signed: true, hasTrailers: false },
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER': { signed: true, hasTrailers: true },
  'STREAMING-UNSIGNED-PAYLOAD-TRAILER': { signed: false, hasTrailers: true },
};

const checksumPrefix = 'x-amz-checksum-';
// Headers with the same prefix that describe a checksum instead of containing one.
const checksumAttributes = new Set(['mode', 'type', 'algorithm']);

/** Prepares to read a body. Rejects requests with wrong headers before a byte is read. */
export function openPayload(
  source: AsyncIterable<Buffer>,
  headers: ReadonlyMap<string, string>,
  authentication: Authentication,
  maxBytes: number,
): Payload {
  const { payloadHash } = authentication;
  const streaming = Object.hasOwn(streamingKinds, payloadHash) ? streamingKinds[payloadHash] : undefined;
  const isDigest = /^[\da-f]{64}$/.test(payloadHash);
  if (streaming === undefined && !isDigest && payloadHash !== unsignedPayload) {
    throw new S3Error('InvalidArgument', {
      message: `x-amz-content-sha256 must be ${unsignedPayload}, a SHA-256 in hexadecimal, or one of ${Object.keys(streamingKinds).join(', ')}.`,
    });
  }
  const length = readLength(headers, streaming !== undefined);
  if (length !== undefined && length > maxBytes) throw createTooLarge(length, maxBytes);

  const expectedMd5 = readContentMd5(headers);
  const expectedChecksum = readChecksumHeader(headers);
  const trailerAlgorithm = readTrailerAlgorithm(headers, streaming);
  if (expectedChecksum !== undefined && trailerAlgorithm !== undefined) {
    throw new S3Error('InvalidRequest', { message: 'Expecting a single x-amz-checksum- header.' });
  }
  const algorithm = expectedChecksum?.algorithm ?? trailerAlgorithm;
  const md5 = createHash('md5');
  const sha256 = isDigest ? createHash('sha256') : undefined;
  const runningChecksum = algorithm === undefined ? undefined : createChecksum(algorithm);
  const decoded =
    streaming === undefined
      ? undefined
      : decodeChunkedBody(source, {
          signing: streaming.signed
            ? { ...authentication, seedSignature: authentication.signature }
            : undefined,
          hasTrailers: streaming.hasTrailers,
          trailerNames: trailerAlgorithm === undefined ? [] : [checksumPrefix + trailerAlgorithm],
        });
  let md5Hex = '';
  let verified: PayloadChecksum | undefined;

  async function* readChunks(): AsyncGenerator<Buffer, void, undefined> {
    let size = 0;
    for await (const chunk of decoded?.chunks ?? source) {
      size += chunk.length;
      if (size > maxBytes) throw createTooLarge(size, maxBytes);
      if (length !== undefined && size > length) throw new S3Error('IncompleteBody');
      md5.update(chunk);
      sha256?.update(chunk);
      runningChecksum?.update(chunk);
      yield chunk;
    }
    if (length !== undefined && size !== length) throw new S3Error('IncompleteBody');
    md5Hex = md5.digest('hex');
    if (expectedMd5 !== undefined && expectedMd5 !== md5Hex) throw new S3Error('BadDigest');
    const computedHash = sha256?.digest('hex');
    if (computedHash !== undefined && computedHash !== payloadHash) {
      throw new S3Error('XAmzContentSHA256Mismatch', {
        details: {
          ClientComputedContentSHA256: payloadHash,
          S3ComputedContentSHA256: computedHash,
        },
      });
    }
    if (algorithm === undefined || runningChecksum === undefined) return;
    const expected = expectedChecksum?.value ?? decoded?.trailers.get(checksumPrefix + algorithm);
    verified = { algorithm, value: runningChecksum.digest() };
    if (expected !== verified.value) {
      throw new S3Error('BadDigest', {
        message: `The ${algorithm.toUpperCase()} you specified did not match the calculated checksum.`,
      });
    }
  }

  return { chunks: readChunks(), length, md5: () => md5Hex, checksum: () => verified };
}

/** Reads a whole small body, such as an XML document. */
export async function readPayload(payload: Payload): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const chunk of payload.chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

/** Returns whether the client sent anything that reveals damage to the body in transit. */
export function hasIntegrityHeader(headers: ReadonlyMap<string, string>): boolean {
  return (
    headers.has('content-md5') || headers.has('x-amz-trailer') || readChecksumHeader(headers) !== undefined
  );
}

function readLength(headers: ReadonlyMap<string, string>, isStreaming: boolean): number | undefined {
  const text = headers.get(isStreaming ? 'x-amz-decoded-content-length' : 'content-length');
  if (text === undefined) {
    if (isStreaming) throw new S3Error('MissingContentLength');
    return undefined;
  }
  if (!/^\d{1,15}$/.test(text)) throw new S3Error('InvalidArgument', { message: 'Invalid content length' });
  return Number(text);
}

function readContentMd5(headers: ReadonlyMap<string, string>): string | undefined {
  const text = headers.get('content-md5');
  if (text === undefined) return undefined;
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== 16 || bytes.toString('base64') !== text) throw new S3Error('InvalidDigest');
  return bytes.toString('hex');
}

function readChecksumHeader(headers: ReadonlyMap<string, string>): PayloadChecksum | undefined {
  const found = [...headers]
    .filter(([name]) => name.startsWith(checksumPrefix))
    .map(([name, value]) => ({ algorithm: name.slice(checksumPrefix.length), value }))
    .filter(({ algorithm }) => !checksumAttributes.has(algorithm));
  const [first] = found;
  if (first === undefined) return undefined;
  if (found.length > 1) {
    throw new S3Error('InvalidRequest', { message: 'Expecting a single x-amz-checksum- header.' });
  }
  const algorithm = readAlgorithm(first.algorithm);
  if (!isChecksumValue(algorithm, first.value)) {
    throw new S3Error('InvalidRequest', {
      message: `Value for ${checksumPrefix}${algorithm} header is invalid.`,
    });
  }
  return { algorithm, value: first.value };
}

function readTrailerAlgorithm(
  headers: ReadonlyMap<string, string>,
  streaming: StreamingKind | undefined,
): ChecksumAlgorithm | undefined {
  const name = headers.get('x-amz-trailer')?.trim().toLowerCase();
  if (name === undefined || name === '') return undefined;
  if (streaming === undefined || !streaming.hasTrailers || !name.startsWith(checksumPrefix)) {
    throw new S3Error('InvalidRequest', {
      message: 'The value specified in the x-amz-trailer header is not supported',
    });
  }
  return readAlgorithm(name.slice(checksumPrefix.length));
}

function readAlgorithm(name: string): ChecksumAlgorithm {
  if (isChecksumAlgorithm(name)) return name;
  throw new S3Error('NotImplemented', {
    message: `The checksum algorithm ${name} is not implemented here; use one of ${checksumAlgorithms.join(', ')}.`,
  });
}

function createTooLarge(proposedBytes: number, maxBytes: number): S3Error {
  return new S3Error('EntityTooLarge', {
    details: { ProposedSize: String(proposedBytes), MaxSizeAllowed: String(maxBytes) },
  });
}
